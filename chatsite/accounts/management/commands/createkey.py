"""`manage.py createkey --user NAME`: prints a new API key, once."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from chatsite.accounts.keys import create_key
from chatsite.accounts.models import ApiKey, User


class Command(BaseCommand):
    help = "Makes an API key and prints it once; a user that does not exist is made, without a password."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", required=True, help="whose key it is")
        parser.add_argument("--name", default="command line", help="what the key is for")
        parser.add_argument(
            "--scopes", default="chat,embeddings", help=f"some of {','.join(ApiKey.Scope.values)}"
        )
        parser.add_argument(
            "--days", type=int, default=None, help="days until it expires; without it never does"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self.check(tags=["serving"], include_deployment_checks=True)
        days = options["days"]
        if days is not None and not 1 <= days <= 36_500:
            raise CommandError("--days must be between 1 and 36500")
        expires_at = None if days is None else timezone.now() + timedelta(days=days)
        scopes = [scope.strip() for scope in options["scopes"].split(",") if scope.strip()]
        try:
            _, secret = create_key(_user(options["user"]), options["name"][:100], scopes, expires_at)
        except ValueError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(secret)


def _user(name: str) -> User:
    user = User.objects.filter(username=name).first()
    if user is None:
        try:
            User._meta.get_field("username").run_validators(name)
        except ValidationError as error:
            raise CommandError(f"{name!r} is not a valid user name: {' '.join(error.messages)}") from error
        user = User.objects.create_user(name)
    return user
