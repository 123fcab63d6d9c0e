"""What was used and what it cost: prices, one row for every answer, one for every day and group."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chatsite.accounts.models.people import ApiKey, Tenant, User


class Price(models.Model):
    """What a model's tokens and device-time cost from a moment on; `model` may end in * and names all that begin so."""

    model = models.CharField(max_length=200)
    valid_from = models.DateTimeField(default=timezone.now)
    currency = models.CharField(max_length=3, default="USD")
    per_million_prompt = models.DecimalField(max_digits=14, decimal_places=6, default=0)
    per_million_reused = models.DecimalField(max_digits=14, decimal_places=6, default=0)
    per_million_generated = models.DecimalField(max_digits=14, decimal_places=6, default=0)
    per_device_hour = models.DecimalField(max_digits=14, decimal_places=6, default=0)

    class Meta:
        verbose_name = _("price")
        verbose_name_plural = _("prices")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["model", "valid_from"], name="one_price_per_model_and_moment"),
            models.CheckConstraint(
                condition=Q(
                    per_million_prompt__gte=0,
                    per_million_reused__gte=0,
                    per_million_generated__gte=0,
                    per_device_hour__gte=0,
                ),
                name="prices_are_not_negative",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} from {self.valid_from:%Y-%m-%d}"


class UsageRecord(models.Model):
    """One row per finished answer or embedding request: who, which model, tokens by source, times in milliseconds.

    `cost` is by the price of that moment; what a cached answer would have cost is `saved_cost`. Changed once at most:
    a row that `is_owed` is still without the engine's figures. Work that nobody asked for has no user.
    """

    class Kind(models.TextChoices):
        ANSWER = "answer", _("answer")
        EMBEDDING = "embedding", _("embedding")

    id = models.BigAutoField(primary_key=True)
    kind = models.CharField(
        max_length=16, choices=Kind.choices, default=Kind.ANSWER, db_default=Kind.ANSWER.value
    )
    # No foreign key: the ledger outlives the conversation it speaks of.
    generation = models.UUIDField(unique=True)
    user = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="usage")
    api_key = models.ForeignKey(
        ApiKey, on_delete=models.SET_NULL, null=True, blank=True, related_name="usage"
    )
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="usage")
    model = models.CharField(max_length=200)
    origin = models.CharField(max_length=16)
    state = models.CharField(max_length=16)
    prompt_tokens = models.PositiveIntegerField(default=0)
    reused_tokens = models.PositiveIntegerField(default=0)
    generated_tokens = models.PositiveIntegerField(default=0)
    peak_kv_bytes = models.PositiveBigIntegerField(default=0)
    block_seconds = models.FloatField(default=0)
    queue_ms = models.FloatField(default=0)
    prefill_ms = models.FloatField(default=0)
    decode_ms = models.FloatField(default=0)
    delivery_ms = models.FloatField(default=0)
    prefilled_tokens = models.PositiveIntegerField(default=0, db_default=0)
    # Made beside the generated ones: end tokens, and those after the answer's end.
    unseen_tokens = models.PositiveIntegerField(default=0, db_default=0)
    device_seconds = models.FloatField(default=0, db_default=0)
    is_owed = models.BooleanField(default=False, db_default=False)
    cost = models.DecimalField(max_digits=18, decimal_places=9, default=0, db_default=0)
    currency = models.CharField(max_length=3, default="", db_default="", blank=True)
    saved_tokens = models.PositiveIntegerField(default=0, db_default=0)
    saved_ms = models.FloatField(default=0, db_default=0)
    saved_cost = models.DecimalField(max_digits=18, decimal_places=9, default=0, db_default=0)
    created_at = models.DateTimeField(default=timezone.now, editable=False, db_index=True)

    class Meta:
        verbose_name = _("usage record")
        verbose_name_plural = _("usage records")
        indexes: ClassVar = [
            models.Index(fields=["tenant", "created_at"], name="usage_by_tenant"),
            models.Index(fields=["user", "created_at"], name="usage_by_user"),
            models.Index(fields=["created_at"], condition=Q(is_owed=True), name="usage_owed"),
        ]

    def __str__(self) -> str:
        return f"{self.state} {self.generation}"


class UsageDay(models.Model):
    """The ledger of one day (UTC) by who asked and where answers came from; rolled up from `UsageRecord`."""

    day = models.DateField()
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="usage_days")
    user = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="usage_days")
    api_key = models.ForeignKey(ApiKey, on_delete=models.SET_NULL, null=True, related_name="usage_days")
    kind = models.CharField(max_length=16, choices=UsageRecord.Kind.choices)
    model = models.CharField(max_length=200)
    origin = models.CharField(max_length=16)
    currency = models.CharField(max_length=3, blank=True)
    answers = models.PositiveBigIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    reused_tokens = models.PositiveBigIntegerField(default=0)
    prefilled_tokens = models.PositiveBigIntegerField(default=0)
    generated_tokens = models.PositiveBigIntegerField(default=0)
    block_seconds = models.FloatField(default=0)
    device_seconds = models.FloatField(default=0)
    cost = models.DecimalField(max_digits=20, decimal_places=9, default=0)
    saved_tokens = models.PositiveBigIntegerField(default=0)
    saved_ms = models.FloatField(default=0)
    saved_cost = models.DecimalField(max_digits=20, decimal_places=9, default=0)

    class Meta:
        verbose_name = _("usage of a day")
        verbose_name_plural = _("usage by day")
        indexes: ClassVar = [
            models.Index(fields=["day"], name="usage_days_by_day"),
            models.Index(fields=["user", "day"], name="usage_days_by_user"),
            models.Index(fields=["tenant", "day"], name="usage_days_by_tenant"),
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.model} {self.origin}"
