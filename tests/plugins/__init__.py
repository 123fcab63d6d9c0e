"""Pytest plugins that are loaded before Django's settings."""
