"""The gateway: a core that makes no tokens itself but asks an OpenAI-compatible engine for them."""
