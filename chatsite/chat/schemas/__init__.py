"""The JSON of the chat's API: what goes out and what may come in. Unknown fields are errors."""
