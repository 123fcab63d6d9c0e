"""Somebody else's Django project that uses the semantic cache with an embedder and a model of its own."""
