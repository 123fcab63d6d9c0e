"""The OpenAI-compatible door: parse, call the one flow, format. Nothing is decided here."""
