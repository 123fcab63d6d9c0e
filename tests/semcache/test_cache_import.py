"""`manage.py cache_import` stores a file's answers as the page does, and says what it does not."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from semcache.admin.audit import NOBODY
from semcache.models import CacheEntry, CacheImport, CacheRule
from tests.semcache import factories

CSV = "question,answer\nWhat is rain?,Water.\nHow do I pay?,Here.\nWhat is snow?,Ice.\n"


@pytest.fixture(autouse=True)
def rule(committed, settings) -> Iterator[CacheRule]:
    settings.SEMCACHE_ASKED_BY = "tests.semcache.lender.as_asked"
    settings.SEMCACHE_RUN_BY = ""
    yield factories.rule(name="Everything", sharing="public", ttl_s=86_400)
    get_user_model().objects.filter(username=NOBODY).delete()


@pytest.fixture
def file(tmp_path) -> Path:
    path: Path = tmp_path / "answers.csv"
    path.write_text(CSV)
    return path


def told(file: Path, *options: str, rule: str = "Everything") -> str:
    output = io.StringIO()
    call_command("cache_import", file, f"--rule={rule}", *options, stdout=output)
    return output.getvalue()


def entries() -> list[str]:
    return list(CacheEntry.objects.order_by("id").values_list("answer", flat=True))


def test_a_file_is_stored_and_found(file):
    said = told(file)
    assert "line 3: not-shared" in said and "2 of 3 rows can be stored: not-shared 1" in said
    assert said.endswith("2 stored, 1 refused\n")
    assert entries() == ["Water.", "Ice."]
    hit = async_to_sync(factories.ask)("What is rain?", factories.all_alike).hit
    assert hit is not None and hit.answer == "Water."
    assert LogEntry.objects.get().change_message == "import of answers.csv: 3 rows, 1 refused"


def test_a_second_run_stores_only_what_is_missing(file):
    told(file)
    CacheEntry.objects.filter(answer="Ice.").delete()
    assert "1 stored, 2 refused" in told(file)
    assert sorted(entries()) == ["Ice.", "Water."]


def test_a_dry_run_stores_nothing(file):
    assert "2 of 3 rows can be stored" in told(file, "--dry-run")
    assert entries() == [] and not CacheImport.objects.exists()


def test_a_business_line_and_a_system_prompt_narrow_who_finds_it(file):
    CacheRule.objects.update(sharing="tenant")
    with pytest.raises(CommandError, match="--tenant"):
        told(file)
    told(file, "--tenant=sales", "--system-prompt=Be brief.")
    asked: dict[str, Any] = {"tenant": "sales", "system_prompt": "Be brief."}
    for changes, is_found in (
        (asked, True),
        (asked | {"tenant": "x"}, False),
        (asked | {"system_prompt": ""}, False),
    ):
        assert (async_to_sync(factories.ask)("What is rain?", **changes).hit is not None) is is_found


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sharing": "private"}, "no enabled rule"),
        ({"is_enabled": False}, "no enabled rule"),
        ({"capacity": 1}, "keeps 1"),
    ],
)
def test_a_rule_that_can_not_take_it_is_named(file, change, words):
    CacheRule.objects.update(**change)
    with pytest.raises(CommandError, match=words):
        told(file)
    assert entries() == []


def test_what_can_not_be_done_is_one_line(file, settings, monkeypatch):
    with pytest.raises(CommandError, match=r"nowhere\.csv"):
        told(file.parent / "nowhere.csv")
    file.write_bytes("问题,答案\n雨,水\n".encode("gbk"))
    with pytest.raises(CommandError, match="not-utf-8"):
        told(file)
    file.write_text(CSV)
    monkeypatch.setattr(factories, "all_alike", factories.broken)
    with pytest.raises(CommandError, match="a worker goes on: ConnectionError"):
        told(file)
    settings.SEMCACHE_ASKED_BY = "tests.semcache.lender.nobody"
    with pytest.raises(CommandError, match="does not say"):
        told(file)
