"""How quick the chat page is with a long chat: opening it, typing beside an answer, and what goes over the wire."""
