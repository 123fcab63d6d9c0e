"""System checks of a process that serves or works: what must be set, each with one clear line.

They run with `serve`, `check --deploy` and in the worker; commands that need less run without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

NEEDED = {
    "secret_key": ("SECRET_KEY", "sessions would end with this process; give it a long random text"),
    "database_url": (
        "DATABASE_URL",
        "there is no database; start `make run` with the same DATA_DIR, or name yours: postgresql://...",
    ),
    "redis_url": ("REDIS_URL", "there is no broker; `make run` starts one, or name yours: redis://..."),
}


@register("serving", deploy=True)
def needed_settings(app_configs: Sequence[Any] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """An error for each setting without which nothing can be served."""
    return [
        Error(f"{variable} is not set: {consequence}", id=f"chatsite.E00{number}")
        for number, (field, (variable, consequence)) in enumerate(NEEDED.items(), 1)
        if not getattr(settings.CONFIG, field)
    ]
