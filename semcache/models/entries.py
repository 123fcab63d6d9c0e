"""Stored answers, how they are used, and which are being made now."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _
from pgvector.django import VectorField

from semcache.models.rules import CacheRule


class CacheEntry(models.Model):
    """One stored answer. `scope` is the SHA-256 of everything that must be equal for it to be served at all."""

    class Source(models.TextChoices):
        ANSWER = "answer", _("an answer to somebody")
        IMPORT = "import", _("brought in from a file")
        PROMOTION = "promotion", _("promoted from several people's answers")

    id = models.BigAutoField(primary_key=True)
    scope = models.CharField(max_length=64)
    prompt_sha256 = models.CharField(max_length=64)
    question = models.TextField()
    answer = models.TextField()
    # Null for entries that only an exact match may serve. Of any size: the embedder decides.
    embedding = VectorField(null=True, blank=True)
    rule = models.ForeignKey(CacheRule, on_delete=models.CASCADE, related_name="entries")
    sharing = models.CharField(max_length=16, choices=CacheRule.Sharing.choices)
    tenant = models.CharField(max_length=64)
    owner = models.CharField(max_length=64)
    model_revision = models.CharField(max_length=200)
    embedder = models.CharField(max_length=100, blank=True)
    generation = models.UUIDField(null=True, blank=True)
    token_ids = ArrayField(models.IntegerField(), default=list, blank=True)
    tokenizer = models.CharField(max_length=64, blank=True)
    num_tokens = models.PositiveIntegerField(default=0)
    # How long the generation took; 0 where none made it.
    took_ms = models.FloatField(default=0.0, db_default=0.0)
    # What its owner said and was answered earlier in the conversation, in turn, as far as the answer hangs on it.
    context = ArrayField(models.TextField(), default=list, db_default=[], blank=True)
    # False for answers about today, which end at midnight whatever a rule's window says, and for words that no model
    # made, which no model can make anew.
    may_be_stale = models.BooleanField(default=True, db_default=True)
    source = models.CharField(
        max_length=16, choices=Source.choices, default=Source.ANSWER, db_default=Source.ANSWER
    )
    is_pinned = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        verbose_name = _("cache entry")
        verbose_name_plural = _("cache entries")
        indexes: ClassVar = [
            models.Index(fields=["scope", "expires_at"], name="entry_in_scope"),
            models.Index(fields=["expires_at"], name="entry_expiry"),
            models.Index(fields=["tenant", "owner"], name="entry_owner"),
            # What waits for a new embedder is found without reading the table.
            models.Index(
                fields=["embedder", "id"], condition=Q(embedding__isnull=False), name="entry_embedder"
            ),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["scope", "prompt_sha256"], name="one_entry_per_scope_and_prompt"),
            models.CheckConstraint(condition=Q(scope__regex=r"^[0-9a-f]{64}$"), name="entry_scope_is_sha256"),
            models.CheckConstraint(
                condition=Q(expires_at__gt=F("created_at")), name="entry_expires_after_creation"
            ),
            models.CheckConstraint(condition=~Q(answer=""), name="entry_has_an_answer"),
        ]

    def __str__(self) -> str:
        return self.question[:80]

    @property
    def is_promotable(self) -> bool:
        """Whether it is an own answer under a rule that makes such answers public."""
        return self.sharing == "private" and self.rule.sharing == "promoted"


class CacheEntryUse(models.Model):
    """When and how often an entry was served. Unlogged in the database: a crash loses only recency."""

    # The database has a foreign key of its own that deletes with the entry (Django knows none such): entries leave by
    # plain SQL in batches.
    entry = models.OneToOneField(
        CacheEntry, on_delete=models.CASCADE, primary_key=True, related_name="use", db_constraint=False
    )
    last_used_at = models.DateTimeField(db_index=True)
    hits = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.hits} hits"


class CacheFlight(models.Model):
    """An answer that is being made for everybody who asks the same now. Unlogged: it means nothing after a crash.

    `aboard` are the generations that wait for it, the leader's own among them until it is stopped.
    """

    scope = models.CharField(max_length=64)
    prompt_sha256 = models.CharField(max_length=64)
    leader = models.UUIDField(unique=True)
    aboard = ArrayField(models.UUIDField())
    is_up = models.BooleanField(default=False)
    is_landed = models.BooleanField(default=False)
    expires_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["scope", "prompt_sha256"], name="one_flight_per_scope_and_prompt"
            ),
        ]

    def __str__(self) -> str:
        return f"{len(self.aboard)} wait for {self.leader}"
