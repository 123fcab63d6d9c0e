"""How a rule does: its checks, its hours, and questions on their way to everybody."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from semcache.models.rules import CacheRule


class CacheCheck(models.Model):
    """Whether one served answer was right, as somebody said or a comparison found: the evidence of the budget."""

    class Kind(models.TextChoices):
        SAMPLED = "sampled", _("made once more and compared")
        THUMB = "thumb", _("a thumb")
        STAFF = "staff", _("marked by staff")

    id = models.BigAutoField(primary_key=True)
    rule = models.ForeignKey(CacheRule, on_delete=models.CASCADE, related_name="checks")
    # Unique where one served answer is judged: a comparison that is delivered twice counts once.
    generation = models.UUIDField(null=True, unique=True)
    # The entry may be gone by now.
    entry = models.BigIntegerField(null=True)
    kind = models.CharField(max_length=16, choices=Kind.choices)
    is_wrong = models.BooleanField()
    # Of the two questions.
    similarity = models.FloatField(null=True)
    score = models.FloatField(null=True)
    checked_at = models.DateTimeField()

    class Meta:
        verbose_name = _("check")
        verbose_name_plural = _("checks")
        indexes: ClassVar = [models.Index(fields=["rule", "checked_at"], name="check_of_rule")]

    def __str__(self) -> str:
        return f"{self.kind}: {'wrong' if self.is_wrong else 'right'}"


class CacheRuleHour(models.Model):
    """What one rule did within one hour: look-ups, hits, and what the hits saved."""

    rule = models.ForeignKey(CacheRule, on_delete=models.CASCADE, related_name="hours")
    hour = models.DateTimeField()
    looks = models.PositiveBigIntegerField(default=0)
    exact_hits = models.PositiveBigIntegerField(default=0)
    semantic_hits = models.PositiveBigIntegerField(default=0)
    stale_hits = models.PositiveBigIntegerField(default=0)
    tokens_saved = models.PositiveBigIntegerField(default=0)
    ms_saved = models.FloatField(default=0.0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rule", "hour"], name="one_row_per_rule_and_hour")
        ]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H}h: {self.looks} look-ups"


class CachePromotion(models.Model):
    """A question on its way from its askers' own scopes to everybody's, or there already.

    One place in each of the three lists belongs to one asker: a salted hash of who it is, the entry with their own
    answer, and the generation that made it, by which it is found when they are erased.
    """

    id = models.BigAutoField(primary_key=True)
    scope = models.CharField(max_length=64)
    prompt_sha256 = models.CharField(max_length=64)
    rule = models.ForeignKey(CacheRule, on_delete=models.CASCADE, related_name="promotions")
    askers = ArrayField(models.CharField(max_length=64), default=list)
    entries = ArrayField(models.BigIntegerField(), default=list)
    generations = ArrayField(models.UUIDField(null=True), default=list)
    created_at = models.DateTimeField()
    promoted_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("promotion")
        verbose_name_plural = _("promotions")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["scope", "prompt_sha256"], name="one_promotion_per_scope_and_prompt"
            ),
        ]

    def __str__(self) -> str:
        return f"{len(self.askers)} asked"
