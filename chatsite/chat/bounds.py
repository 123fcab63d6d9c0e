"""The most tokens an answer can use, known before anything was tokenised: what its quotas hold until its end.

An upper bound, so that answers which are made side by side never use more together than they hold. Whoever is bound
by a quota of tokens does well to name `max_tokens`.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Count, Sum
from django.db.models.functions import Length

from chatsite.chat.models import Conversation
from inference.types import EngineInfo, Segment

# Byte-level tokenizers make no more tokens than bytes; one of UTF-8 has at most four bytes to a character. What a
# template writes around a message, or before all of them, is far shorter than this.
BYTES_PER_CHAR = 4
TOKENS_AROUND_MESSAGE = 64


def most_tokens(prompt: int, max_tokens: int | None, info: EngineInfo | None) -> int:
    """Prompt and answer together: no more than the engine's window and its own cap on answers let through."""
    if info is None:  # it never said; it will refuse, or say by then
        return prompt + (max_tokens or 0)
    return min(prompt + min(max_tokens or info.max_output_tokens, info.max_output_tokens), info.max_context)


def of_segments(segments: Sequence[Segment]) -> int:
    """What a prompt of these messages has at most."""
    texts = sum(len(segment.text.encode()) + len(segment.tool_calls.encode()) for segment in segments)
    return texts + TOKENS_AROUND_MESSAGE * (len(segments) + 1)


def of_texts(texts: Sequence[str]) -> int:
    """What texts to embed have at most."""
    return sum(len(text.encode()) for text in texts) + TOKENS_AROUND_MESSAGE * len(texts)


def of_conversation(conversation: Conversation) -> int:
    """What any of its branches has at most: no branch is longer than all messages together."""
    messages = conversation.messages.aggregate(chars=Sum(Length("text")), num=Count("pk"))
    chars = (messages["chars"] or 0) + len(conversation.system_prompt)
    return BYTES_PER_CHAR * int(chars) + TOKENS_AROUND_MESSAGE * (int(messages["num"]) + 1)
