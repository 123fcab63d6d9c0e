"""Migrate, ask, tidy up, and print as JSON what happened."""

from __future__ import annotations

import asyncio
import json
import os
import sys

import django
from django.core.management import call_command

WORDINGS = {
    "first": ("Which plans include backup?", "user:1"),
    "again": ("which plans include backup?", "user:1"),
    "alike": ("Which of the plans include a backup?", "user:1"),
    "stranger": ("Which plans include backup?", "user:2"),
    "other": ("How long does the battery last?", "user:1"),
}


def main() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.semcache_project.settings"
    django.setup()
    call_command("migrate", verbosity=0)
    call_command("check", fail_level="WARNING", stdout=sys.stderr)
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
    print(json.dumps(asyncio.run(asked()) | tidied_up() | {"foreign": foreign_modules()}))


async def asked() -> dict[str, str]:
    from semcache import service
    from tests.semcache_project.answers import answered

    answers = {name: await answered(text, user) for name, (text, user) in WORDINGS.items()}
    await service.flush_hits()
    return answers


def tidied_up() -> dict[str, int]:
    from semcache.storage import eviction

    return {"expired": eviction.delete_expired(), "full_rules": len(eviction.full_rules())}


def foreign_modules() -> list[str]:
    """What the site is made of and a library must not bring along."""
    return sorted({"chatsite", "inference", "celery", "channels", "torch"} & set(sys.modules))


if __name__ == "__main__":
    main()
