"""Measurements that people start by hand; what runs in `make test` only checks that they still work."""
