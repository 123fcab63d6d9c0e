"""The chat page. It carries what the page's scripts need to start; everything else comes by socket and API."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe

from chatsite.accounts.callers import is_welcome
from chatsite.accounts.models import User
from chatsite.chat import frames
from chatsite.chat.models import Conversation
from chatsite.db import run_in_db
from chatsite.engines import served
from chatsite.static_files import modules_of

# No script of this page makes markup from strings; this makes the browser see to it.
TRUSTED_TYPES = {"require-trusted-types-for": ["'script'"], "trusted-types": ["'none'"]}


@ensure_csrf_cookie
@require_safe
async def chat(request: HttpRequest, conversation: UUID | None = None) -> HttpResponse:
    """The page with a new or a stored conversation; people who are not signed in go to the door."""
    user = await run_in_db(get_user, request)
    if not isinstance(user, User) or not is_welcome(user):
        return redirect("signin")
    if conversation is not None and not await run_in_db(_owns, user.pk, conversation):
        raise Http404
    context = {"boot": await _boot(user, conversation), "user": user, "modules": modules_of("chat/main.js")}
    response = render(request, "chat/page.html", context)
    response._csp_update = TRUSTED_TYPES  # type: ignore[attr-defined]  # django-csp's decorator is for sync views
    return response


async def _boot(user: User, conversation: UUID | None) -> dict[str, Any]:
    models = [
        {"name": info.model, "is_trial": info.is_trial_model, "max_context": info.max_context}
        for info in (await served()).models
    ]
    return {
        "protocol": frames.PROTOCOL,
        "user": {
            "name": user.get_username(),
            "is_guest": user.is_guest,
            "is_staff": user.is_staff,
            "has_password": user.has_usable_password(),
        },
        "models": models,
        "conversation": str(conversation) if conversation else None,
        "language": get_language(),
        "can_share": settings.CONFIG.sharing,
        "limits": {
            "max_message_chars": settings.CONFIG.max_message_chars,
            "max_import_bytes": settings.CONFIG.max_import_bytes,
        },
    }


def _owns(user_id: int, conversation: UUID) -> bool:
    return Conversation.objects.filter(pk=conversation, owner=user_id, is_temporary=False).exists()
