"""Who uses the site: tenants, users, API keys, and what they used.

Knows nothing of conversations. Passwords are Django's; keys are stored as prefix + SHA-256 only.
"""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser, UserManager
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class TenantManager(models.Manager["Tenant"]):
    def default(self) -> Tenant:
        """The business line of everybody who is not placed elsewhere."""
        return self.get(is_default=True)


class Tenant(models.Model):
    """A business line. Quotas, prices and cost reports hang on it; one default row always exists."""

    slug = models.SlugField(max_length=64, unique=True)
    name = models.CharField(max_length=200)
    is_default = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = TenantManager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["is_default"], condition=Q(is_default=True), name="one_default_tenant"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class PeopleManager(UserManager["User"]):
    """Makes users; without a business line they get the default one."""

    use_in_migrations = False

    def create_user(
        self, username: str, email: str | None = None, password: str | None = None, **fields: Any
    ) -> User:
        return super().create_user(username, email, password, **_with_tenant(fields))

    def create_superuser(
        self, username: str, email: str | None = None, password: str | None = None, **fields: Any
    ) -> User:
        return super().create_superuser(username, email, password, **_with_tenant(fields))


def _with_tenant(fields: dict[str, Any]) -> dict[str, Any]:
    return (
        fields if {"tenant", "tenant_id"} & fields.keys() else fields | {"tenant": Tenant.objects.default()}
    )


class User(AbstractUser):
    """A person or, for an integration, a service account. Guests live seven days in a scope of their own."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="users")
    is_guest = models.BooleanField(default=False)
    guest_until = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[PeopleManager] = PeopleManager()

    class Meta(AbstractUser.Meta):
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(is_guest=False, guest_until__isnull=True)
                | Q(is_guest=True, guest_until__isnull=False),
                name="guests_have_an_end",
            ),
            models.CheckConstraint(
                condition=Q(is_guest=False) | Q(is_staff=False, is_superuser=False),
                name="guests_are_never_staff",
            ),
        ]


class ApiKey(models.Model):
    """A 256-bit key for the REST API. The key itself is shown once and never stored."""

    class Scope(models.TextChoices):
        CHAT = "chat", _("chat")
        EMBEDDINGS = "embeddings", _("embeddings")
        USAGE = "usage", _("usage")
        CACHE_ADMIN = "cache-admin", _("cache administration")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_keys")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="api_keys")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16, db_index=True)
    sha256 = models.CharField(max_length=64, unique=True)
    scopes = ArrayField(models.CharField(max_length=32, choices=Scope.choices))
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    # The key that took this one's place; this one goes on until its own end, so that clients can be changed over.
    replaced_by = models.OneToOneField(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="replaces"
    )

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(scopes__len__gt=0), name="key_has_a_scope"),
            models.CheckConstraint(condition=Q(sha256__regex=r"^[0-9a-f]{64}$"), name="key_hash_is_sha256"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class Identity(models.Model):
    """Who a user is at a sign-in provider: its `subject`, because names and addresses change hands."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=200)
    subject = models.CharField(max_length=255)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "identities"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="one_user_per_identity"),
        ]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"


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


class SignInFailures(models.Model):
    """Failed tries from one address for one name within a window; the brake reads it. Names are kept as hashes only."""

    address = models.CharField(max_length=64)
    name_sha256 = models.CharField(max_length=64)
    count = models.PositiveIntegerField(default=0)
    window_start = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["address", "name_sha256"], name="one_count_per_address_and_name"),
        ]

    def __str__(self) -> str:
        return f"{self.count} from {self.address}"


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
        indexes: ClassVar = [
            models.Index(fields=["day"], name="usage_days_by_day"),
            models.Index(fields=["user", "day"], name="usage_days_by_user"),
            models.Index(fields=["tenant", "day"], name="usage_days_by_tenant"),
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.model} {self.origin}"
