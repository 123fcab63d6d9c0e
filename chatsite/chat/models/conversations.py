"""Conversations, their messages, and the generations that answer them: the durable truth of the chat.

Knows states and invariants; the flow that moves them is `chat.reply`. Branches are siblings under one parent.
"""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chatsite.chat.terms import Terms


class State(models.TextChoices):
    """Life of an answer. The last four are final and never change again."""

    QUEUED = "queued", _("queued")
    RUNNING = "running", _("running")
    COMPLETE = "complete", _("complete")
    STOPPED = "stopped", _("stopped")
    FAILED = "failed", _("failed")
    INTERRUPTED = "interrupted", _("interrupted")


LIVE_STATES = (State.QUEUED, State.RUNNING)
FINAL_STATES = (State.COMPLETE, State.STOPPED, State.FAILED, State.INTERRUPTED)
# The only moves there are; `generations.move()` refuses all others.
ALLOWED_MOVES = {
    State.QUEUED: frozenset({State.RUNNING, *FINAL_STATES}),
    State.RUNNING: frozenset(FINAL_STATES),
}


class Role(models.TextChoices):
    USER = "user", _("user")
    ASSISTANT = "assistant", _("assistant")


class Origin(models.TextChoices):
    """Where an answer came from."""

    MODEL = "model", _("model")
    EXACT = "exact", _("exact cache hit")
    SEMANTIC = "semantic", _("semantic cache hit")


class Conversation(models.Model):
    """A tree of messages owned by one user. `active_leaf` names the branch that is shown."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="conversations"
    )
    title = models.CharField(max_length=200, blank=True)
    system_prompt = models.TextField(blank=True)
    parameters = models.JSONField(default=dict, blank=True)
    # By which the next answer is made; empty before the first question, unless one was chosen. The default is the
    # database's too, because a web process of the version before may still write rows.
    model = models.CharField(max_length=200, blank=True, default="", db_default="")
    active_leaf = models.ForeignKey(
        "Message", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    is_pinned = models.BooleanField(default=False)
    is_archived = models.BooleanField(default=False)
    is_temporary = models.BooleanField(default=False)
    tags = ArrayField(models.CharField(max_length=40), default=list, blank=True, db_default=[])
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("conversation")
        verbose_name_plural = _("conversations")
        indexes: ClassVar = [
            models.Index(fields=["owner", "-updated_at"], name="conversation_list"),
            GinIndex(Terms(F("title")), name="conversation_search"),
        ]

    def __str__(self) -> str:
        return str(self.id)  # the title is what somebody wrote; logs and the admin name rows by this


class Message(models.Model):
    """One turn of one side. `token_ids` is the ledger of an answer: its ids as generated, for KV reuse."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="messages")
    parent = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="children"
    )
    role = models.CharField(max_length=16, choices=Role.choices)
    text = models.TextField(blank=True)
    token_ids = ArrayField(models.IntegerField(), default=list, blank=True)
    tokenizer = models.CharField(max_length=64, blank=True)
    # Made by the client once per draft, so that a message sent three times is one message.
    client_message_id = models.UUIDField(null=True, blank=True)
    state = models.CharField(max_length=16, choices=State.choices, default=State.COMPLETE)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["conversation", "created_at"], name="message_order"),
            # Not while it is written: each checkpoint would index the whole text anew.
            GinIndex(Terms(F("text")), condition=Q(state__in=FINAL_STATES), name="message_search"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["conversation", "client_message_id"],
                condition=Q(client_message_id__isnull=False),
                name="one_message_per_client_id",
            ),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="message_role_known"),
            models.CheckConstraint(condition=Q(state__in=State.values), name="message_state_known"),
            models.CheckConstraint(
                condition=~Q(role="user") | Q(state="complete"), name="user_messages_are_complete"
            ),
            models.CheckConstraint(condition=~Q(parent=F("id")), name="message_is_not_its_own_parent"),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.id}"


class Generation(models.Model):
    """One answer being made. Its live text belongs to the engine's event log; what is stored here is a checkpoint.

    The process named by `lease_owner` stores the text; when `lease_until` has passed another one may adopt it and
    goes on after `stored_seq`. `/v1` answers have no message.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    message = models.OneToOneField(
        Message, on_delete=models.CASCADE, null=True, blank=True, related_name="generation"
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="generations")
    api_key = models.ForeignKey(
        "accounts.ApiKey", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    # The name under which the engine keeps KV of an answer that belongs to none of our conversations. The default is
    # the database's too, because a web process of the version before may still write rows.
    kv_conversation = models.CharField(max_length=64, blank=True, default="", db_default="")
    engine = models.CharField(max_length=100, blank=True)
    model = models.CharField(max_length=200, blank=True)
    origin = models.CharField(max_length=16, choices=Origin.choices, default=Origin.MODEL)
    cache_entry = models.BigIntegerField(null=True, blank=True)
    cache_age_s = models.PositiveIntegerField(null=True, blank=True)
    # The stored answer was past its time, and was made anew meanwhile.
    cache_is_stale = models.BooleanField(default=False, db_default=False)
    state = models.CharField(max_length=16, choices=State.choices, default=State.QUEUED)
    finish_reason = models.CharField(max_length=32, blank=True)
    error_code = models.CharField(max_length=64, blank=True)
    lease_owner = models.CharField(max_length=100, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    stored_seq = models.PositiveBigIntegerField(default=0)
    prompt_tokens = models.PositiveIntegerField(default=0)
    reused_head_tokens = models.PositiveIntegerField(default=0)
    reused_prefix_tokens = models.PositiveIntegerField(default=0)
    reused_shared_tokens = models.PositiveIntegerField(default=0)
    reused_disk_tokens = models.PositiveIntegerField(default=0)
    prefilled_tokens = models.PositiveIntegerField(default=0)
    generated_tokens = models.PositiveIntegerField(default=0)
    # Messages of the history that were too many for the model's window; the oldest are left out first.
    trimmed_messages = models.PositiveIntegerField(default=0)
    queue_ms = models.FloatField(default=0)
    prefill_ms = models.FloatField(default=0)
    decode_ms = models.FloatField(default=0)
    ttft_ms = models.FloatField(default=0)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    deadline_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("generation")
        verbose_name_plural = _("generations")
        indexes: ClassVar = [
            models.Index(
                fields=["lease_until"], condition=Q(state__in=LIVE_STATES), name="generation_leases"
            ),
            models.Index(fields=["user", "-created_at"], name="generation_by_user"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(state__in=State.values), name="generation_state_known"),
            models.CheckConstraint(condition=Q(origin__in=Origin.values), name="generation_origin_known"),
            models.CheckConstraint(
                condition=Q(state__in=LIVE_STATES, finished_at__isnull=True)
                | Q(state__in=FINAL_STATES, finished_at__isnull=False),
                name="final_generations_are_stamped",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.state} {self.id}"

    @property
    def reused_tokens(self) -> int:
        """Prompt tokens whose KV was reused, from all sources."""
        return (
            self.reused_head_tokens
            + self.reused_prefix_tokens
            + self.reused_shared_tokens
            + self.reused_disk_tokens
        )


class AgainOrder(models.Model):
    """What a worker is to make once more, with its words. They lie here, so that the broker holds an id only, and they
    go with the answer that gave rise to it."""

    run = models.UUIDField(primary_key=True)
    generation = models.ForeignKey(Generation, on_delete=models.CASCADE, related_name="+")
    order = models.JSONField()
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    def __str__(self) -> str:
        return str(self.run)
