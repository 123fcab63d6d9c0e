"""Conversations and the one flow that answers them (`reply`), with its doors."""
