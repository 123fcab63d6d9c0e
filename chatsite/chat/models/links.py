"""What leaves: exports and shared snapshots by link, and the receipts of what was erased."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chatsite.chat.models.conversations import Conversation


class ErasureReceipt(models.Model):
    """What was asked to be erased, when, and what each store says about it. Names nobody: whoever asked has its id."""

    class What(models.TextChoices):
        CONVERSATION = "conversation", _("a conversation")
        PERSON = "person", _("everything of a person")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    what = models.CharField(max_length=16, choices=What.choices)
    # Opaque names of what the engine still has to drop; emptied when it did.
    pending = models.JSONField(default=list, blank=True)
    # store -> {"erased": number of things, "at": time}; a store that is not named yet is not done yet.
    stores = models.JSONField(default=dict, blank=True)
    requested_at = models.DateTimeField(default=timezone.now, editable=False, db_index=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.what} {self.id}"


class ExportLink(models.Model):
    """A link that gives one export once, within minutes. Only a hash of its secret is kept."""

    sha256 = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    form = models.CharField(max_length=16)
    expires_at = models.DateTimeField(db_index=True)
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.form} until {self.expires_at}"


class ShareLink(models.Model):
    """A conversation as it was at one moment, for whoever has the link. Only a hash of the link's secret is kept.

    A link that was taken back stays as a date; what it showed is gone.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    sha256 = models.CharField(max_length=64, unique=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="shares")
    title = models.CharField(max_length=200, blank=True)
    # [{"role", "text"}] in order: the branch that was shown.
    messages = models.JSONField(default=list)
    num_messages = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("shared link")
        verbose_name_plural = _("shared links")

    def __str__(self) -> str:
        return str(self.id)
