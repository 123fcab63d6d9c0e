"""From a provider's claims to a user of the site: by issuer and subject, which change hands with nobody.

Never by name or address: whoever chooses those at a provider would choose an account here. Groups, business line and
staff follow the claims at every sign-in, as far as the operator maps them. Knows rows and settings, no protocol.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from chatsite.accounts.models import Identity, Tenant, User
from chatsite.accounts.oidc.rules import pairs

MAX_NAME_CHARS = 100
GUESTS = "guest-"


class NotWelcome(Exception):
    """Nobody here is this identity, and the site takes nobody new."""


def user_of(claims: Mapping[str, Any]) -> User:
    """The user who is meant, made where the site takes new ones. Raises NotWelcome."""
    subject, issuer = str(claims["sub"]), settings.CONFIG.oidc_issuer
    try:
        identity = _known(issuer, subject) or _made(issuer, subject, claims)
    except (
        IntegrityError
    ):  # two first sign-ins at once, of one person or of two of one name: the other was faster
        identity = _known(issuer, subject) or _made(issuer, subject, claims)
    Identity.objects.filter(pk=identity.pk).update(last_used_at=timezone.now())
    _follow(identity.user, _groups_in(claims))
    return identity.user


def _known(issuer: str, subject: str) -> Identity | None:
    return Identity.objects.select_related("user").filter(issuer=issuer, subject=subject).first()


@transaction.atomic
def _made(issuer: str, subject: str, claims: Mapping[str, Any]) -> Identity:
    if not settings.CONFIG.oidc_new_users:
        raise NotWelcome
    user = User.objects.create_user(_free_name(str(claims.get("preferred_username") or "")))
    return Identity.objects.create(user=user, issuer=issuer, subject=subject)


def _free_name(wished: str) -> str:
    """The name they have at the provider, if nobody has it here; else one like it."""
    name = re.sub(r"[^\w.@+-]", "", wished)[:MAX_NAME_CHARS]
    try:
        UnicodeUsernameValidator()(name)
    except ValidationError:
        name = ""
    is_free = (
        name
        and not name.lower().startswith(GUESTS)
        and not User.objects.filter(username__iexact=name).exists()
    )
    return name if is_free else f"{name.lower().removeprefix(GUESTS) or 'user'}-{secrets.token_hex(4)}"


def _groups_in(claims: Mapping[str, Any]) -> set[str]:
    """What the claim names; one that is missing or of another form names nothing."""
    named = claims.get(settings.CONFIG.oidc_groups_claim)
    return {name for name in named if isinstance(name, str)} if isinstance(named, list) else set()


@transaction.atomic
def _follow(user: User, theirs: Collection[str]) -> None:
    config = settings.CONFIG
    groups = pairs(config.oidc_groups)
    if groups:
        wanted = {ours for name, ours in groups if name in theirs}
        user.groups.remove(*user.groups.filter(name__in={ours for _, ours in groups} - wanted))
        user.groups.add(*(Group.objects.get_or_create(name=name)[0] for name in wanted))
    for name, slug in pairs(config.oidc_tenants):
        if name in theirs:
            user.tenant = Tenant.objects.filter(slug=slug).first() or user.tenant
            break
    if config.oidc_staff_group:
        user.is_staff = config.oidc_staff_group in theirs
    user.save(update_fields=["tenant", "is_staff"])
