"""Conversations leave as Markdown and JSON, and come in from our own JSON and from ChatGPT's export."""
