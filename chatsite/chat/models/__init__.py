"""Conversations and what belongs to them: the durable truth of the chat."""

from chatsite.chat.models.beside import Feedback, PromptTemplate
from chatsite.chat.models.conversations import (
    ALLOWED_MOVES,
    FINAL_STATES,
    LIVE_STATES,
    AgainOrder,
    Conversation,
    Generation,
    Message,
    Origin,
    Role,
    State,
)
from chatsite.chat.models.links import ErasureReceipt, ExportLink, ShareLink

__all__ = [
    "ALLOWED_MOVES",
    "FINAL_STATES",
    "LIVE_STATES",
    "AgainOrder",
    "Conversation",
    "ErasureReceipt",
    "ExportLink",
    "Feedback",
    "Generation",
    "Message",
    "Origin",
    "PromptTemplate",
    "Role",
    "ShareLink",
    "State",
]
