"""`manage.py ensure_admin`: one superuser exists afterwards. The launcher calls it at each start."""

from __future__ import annotations

import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from chatsite.accounts.models import User

NAME = "admin"
PASSWORD_VARIABLE = "ADMIN_PASSWORD"  # noqa: S105 - the name of a variable


class Command(BaseCommand):
    help = f"Makes the superuser '{NAME}' with the password in {PASSWORD_VARIABLE} when there is no superuser yet."

    def handle(self, *args: Any, **options: Any) -> None:
        existing = User.objects.filter(is_superuser=True).order_by("pk").first()
        if existing is not None:
            self.stdout.write(f"superuser exists: {existing.username}")
            return
        password = os.environ.get(PASSWORD_VARIABLE, "")
        if not password:
            raise CommandError(f"there is no superuser; set {PASSWORD_VARIABLE} to make one")
        self._make(password)

    def _make(self, password: str) -> None:
        user = User.objects.filter(username=NAME).first()
        if user is not None:
            raise CommandError(
                f"'{NAME}' exists and is no superuser; promote it or make another with createsuperuser"
            )
        User.objects.create_superuser(NAME, password=password)
        self.stdout.write(f"superuser made: {NAME}")
