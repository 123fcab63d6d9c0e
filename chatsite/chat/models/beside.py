"""What stands beside conversations: texts to begin with, and what people say of answers."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chatsite.chat.models.conversations import Message


class PromptTemplate(models.Model):
    """A text with variables that starts a message; without an owner it is everybody's."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True)
    title = models.CharField(max_length=120)
    body = models.TextField()
    language = models.CharField(max_length=16, default="en")
    is_starter = models.BooleanField(default=False)
    use_count = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return self.title


class Feedback(models.Model):
    """A thumb up or down on an answer, one per user and answer."""

    class Verdict(models.TextChoices):
        UP = "up", _("up")
        DOWN = "down", _("down")

    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="feedback")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    verdict = models.CharField(max_length=8, choices=Verdict.choices)
    reason = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["message", "user"], name="one_feedback_per_user"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} {self.message_id}"
