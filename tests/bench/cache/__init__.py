"""How long the semantic cache takes on real PostgreSQL, and what it costs the database: `make bench-cache`."""
