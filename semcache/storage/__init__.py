"""Rows, vectors and indexes: how answers are found, kept, and how they leave. Synchronous, for database threads."""
