"""The templates that are shipped: both languages, once, for everybody, and no more theirs than staff's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.test import AsyncClient

from chatsite.accounts.models import User
from chatsite.chat.models import PromptTemplate
from chatsite.chat.prompt_templates import variables_of
from chatsite.chat.schemas.templates import TemplateIn
from chatsite.chat.template_presets import PRESETS, add_missing
from chatsite.db import run_in_db
from tests.chat.api_client import KIND
from tests.chat.conftest import make_user

NUM_OFFERED = 3  # in an empty chat


@pytest.fixture
def shipped(transactional_db: None) -> Iterator[None]:
    """As after the first migration, whatever other tests left; up to date again afterwards."""
    PromptTemplate.objects.all().delete()
    migrate("0009_share_links")
    migrate()
    yield
    migrate()


def migrate(*to: str) -> None:
    call_command("migrate", "chat", *to, verbosity=0)


def everybodys() -> set[tuple[str, str]]:
    return set(PromptTemplate.objects.filter(owner=None).values_list("language", "title"))


def test_each_language_has_the_same_ones_with_places_to_fill_in() -> None:
    of = {language: [p for p in PRESETS if p.language == language] for language in ("en", "zh-hans")}
    assert sum(map(len, of.values())) == len(PRESETS)
    assert len(set(map(len, of.values()))) == 1 and len(of["en"]) >= 5
    for presets in of.values():
        assert sum(preset.is_starter for preset in presets) == NUM_OFFERED
    for english, chinese in zip(of["en"], of["zh-hans"], strict=True):
        assert english.is_starter == chinese.is_starter
        assert len(variables_of(english.body)) == len(variables_of(chinese.body)) > 0
    for preset in PRESETS:
        TemplateIn(title=preset.title, body=preset.body, language=preset.language)
    assert max(Counter((p.language, p.title) for p in PRESETS).values()) == 1


def test_the_migration_adds_them_and_leaves_them_on_the_way_back(shipped: None) -> None:
    wanted = {(preset.language, preset.title) for preset in PRESETS}
    assert everybodys() == wanted
    PromptTemplate.objects.filter(title="Translate").update(body="Render: {{text}}", use_count=5)
    migrate("0009_share_links")
    migrate()
    assert everybodys() == wanted and PromptTemplate.objects.count() == len(PRESETS)
    kept = PromptTemplate.objects.get(title="Translate")
    assert (kept.body, kept.use_count) == ("Render: {{text}}", 5)


def test_one_that_staff_deleted_stays_deleted(shipped: None) -> None:
    PromptTemplate.objects.filter(title="Translate").delete()
    migrate()
    assert not PromptTemplate.objects.filter(title="Translate").exists()


def test_what_staff_has_made_already_is_not_made_twice(transactional_db: None) -> None:
    PromptTemplate.objects.all().delete()
    for body in ("ours", "ours, too"):
        PromptTemplate.objects.create(owner=None, title="Translate", body=body)
    PromptTemplate.objects.create(owner=make_user("ann"), title="Summarise", body="mine")
    added = add_missing(PromptTemplate)
    assert len(added) == len(PRESETS) - 1 and "Translate" not in added and "Summarise" in added
    assert set(PromptTemplate.objects.filter(title="Translate").values_list("body", flat=True)) == {
        "ours",
        "ours, too",
    }


async def test_everybody_sees_them_and_staff_keeps_them(
    page: AsyncClient, stranger: AsyncClient, other_user: User, clean: Any
) -> None:
    await run_in_db(add_missing, PromptTemplate)
    await run_in_db(User.objects.filter(pk=other_user.pk).update, is_staff=True)
    query = {"language": "zh-hans", "starters": "true"}
    starters = (await page.get("/api/templates", query)).json()
    assert {row["title"] for row in starters} == {
        p.title for p in PRESETS if p.language == "zh-hans" and p.is_starter
    }
    url = f"/api/templates/{starters[0]['id']}"
    assert (await page.delete(url)).status_code == 403
    changed = await stranger.patch(url, {"body": "{{文本}}"}, content_type=KIND)
    assert (changed.status_code, changed.json()["is_shared"]) == (200, True)
    assert (await stranger.delete(url)).status_code == 204
