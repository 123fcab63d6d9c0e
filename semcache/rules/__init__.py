"""Which rule decides about a question."""
