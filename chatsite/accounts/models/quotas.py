"""How much may be used, and how much is: quotas, counters, and what unfinished answers hold."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from chatsite.accounts.models.people import ApiKey, Tenant, User


class Quota(models.Model):
    """What may be used within a window. A row for one user, key or business line comes before the row for each."""

    class Applies(models.TextChoices):
        EACH_USER = "each_user", _("each user")
        EACH_GUEST = "each_guest", _("each guest")
        EACH_KEY = "each_key", _("each API key")
        EACH_TENANT = "each_tenant", _("each business line")
        USER = "user", _("one user")
        KEY = "key", _("one API key")
        TENANT = "tenant", _("one business line")

    applies = models.CharField(max_length=16, choices=Applies.choices)
    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, blank=True, related_name="quotas")
    api_key = models.ForeignKey(
        ApiKey, on_delete=models.CASCADE, null=True, blank=True, related_name="quotas"
    )
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, null=True, blank=True, related_name="quotas")
    window_s = models.PositiveIntegerField()
    # None: no limit of this kind.
    max_requests = models.PositiveBigIntegerField(null=True, blank=True)
    max_tokens = models.PositiveBigIntegerField(null=True, blank=True)

    class Meta:
        verbose_name = _("quota")
        verbose_name_plural = _("quotas")
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(applies="user", user__isnull=False, api_key__isnull=True, tenant__isnull=True)
                | Q(applies="key", user__isnull=True, api_key__isnull=False, tenant__isnull=True)
                | Q(applies="tenant", user__isnull=True, api_key__isnull=True, tenant__isnull=False)
                | Q(
                    applies__in=["each_user", "each_guest", "each_key", "each_tenant"],
                    user__isnull=True,
                    api_key__isnull=True,
                    tenant__isnull=True,
                ),
                name="quota_names_what_it_applies_to",
            ),
            models.CheckConstraint(
                condition=Q(window_s__gte=1, window_s__lte=366 * 86_400), name="quota_window_in_range"
            ),
            models.CheckConstraint(
                condition=Q(max_requests__isnull=False) | Q(max_tokens__isnull=False),
                name="quota_limits_something",
            ),
            models.UniqueConstraint(
                fields=["applies", "user", "api_key", "tenant", "window_s"],
                nulls_distinct=False,
                name="one_quota_per_subject_and_window",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.applies} per {self.window_s} s"


class QuotaUse(models.Model):
    """What a subject (`user:5`, `key:UUID`, `tenant:1`) has used in a window, and what its unfinished answers hold."""

    subject = models.CharField(max_length=64)
    window_s = models.PositiveIntegerField()
    window_start = models.DateTimeField()
    requests = models.PositiveBigIntegerField(default=0)
    tokens = models.PositiveBigIntegerField(default=0)
    reserved_tokens = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["subject", "window_s", "window_start"], name="one_count_per_subject_and_window"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["window_start"], name="quota_use_by_age")]

    def __str__(self) -> str:
        return f"{self.subject} since {self.window_start}"


class QuotaHold(models.Model):
    """What one unfinished answer holds of its quotas: which counters, and how many tokens in each.

    Deleted by whoever settles it, so nothing is settled twice. It hangs on no row of the answer: who erases an answer
    in the making pays for it all the same.
    """

    generation = models.UUIDField(primary_key=True)
    uses = ArrayField(models.BigIntegerField())
    tokens = models.PositiveBigIntegerField()
    # Later than the answer's deadline: what still stands then has nobody left who would settle it.
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.tokens} tokens of {self.generation}"
