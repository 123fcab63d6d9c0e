"""A public load client against `/v1`: locust, started by `make comply` or by hand against any site."""
