"""Who uses the site: business lines, users, their keys, their identities elsewhere, and what the brake counts.

Passwords are Django's; keys are stored as prefix + SHA-256 only.
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
        verbose_name = _("business line")
        verbose_name_plural = _("business lines")
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
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")
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
        verbose_name = _("identity")
        verbose_name_plural = _("identities")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="one_user_per_identity"),
        ]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"


class SignInFailures(models.Model):
    """What the brake counts in a window: tries for a name at an address or anywhere; new users. Names are hashes."""

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
