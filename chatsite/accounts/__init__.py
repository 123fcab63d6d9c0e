"""Tenants, users, API keys and the usage ledger."""
