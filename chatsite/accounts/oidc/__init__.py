"""Signing in by an OpenID Connect provider: off until CHAT_OIDC_ISSUER is set."""
