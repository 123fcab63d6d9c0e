"""The chat's JSON API: one resource per module. A door: parse, call one function, format."""

from __future__ import annotations

from ninja import Router

router = Router(tags=["chat"])
router.add_router("", "chatsite.chat.api.conversations.router")
router.add_router("", "chatsite.chat.api.messages.router")
router.add_router("", "chatsite.chat.api.generations.router")
router.add_router("", "chatsite.chat.api.feedback.router")
router.add_router("", "chatsite.chat.api.templates.router")
router.add_router("", "chatsite.chat.api.transfer.router")
router.add_router("", "chatsite.chat.api.sharing.router")
router.add_router("", "chatsite.chat.api.rights.router")
