"""Answers brought in from files."""
