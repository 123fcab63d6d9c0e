"""The Django site: wiring in this package, one package per room below it."""
