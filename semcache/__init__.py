"""Semantic cache: reuse an answer only when it is the right answer. Usable without the rest of the project."""
