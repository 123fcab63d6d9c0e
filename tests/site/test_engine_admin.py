"""The engine's page: what staff see of a running engine, of one that loads, and of one that is down."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import fields, replace
from typing import Any, cast

import pytest
from django.contrib.auth import get_user_model
from django.utils.translation import gettext, override

from chatsite import engine_admin
from chatsite.engine import Engine
from chatsite.engine_report import sections_of
from chatsite.engines import Engines
from inference.client import EngineClient
from inference.errors import EngineUnavailable, ModelLoading
from inference.types import EngineInfo, EngineStats, SharedPrefixStats, TemplateFindings
from tests.livesite import LiveSite
from tests.site.conftest import make_person, sign_in
from tests.site.test_texts import ROOT, texts_of

PAGE = "/admin/engine/"
INFO = EngineInfo(
    "e", "a-model", "r1", "t1", 8192, 4096, "bf16", "cpu", "e5", 384, 23_040, False, 0.7,
    TemplateFindings(), "fcfs", 16, 0,
)  # fmt: skip
ZEROS: dict[str, Any] = dict.fromkeys((field.name for field in fields(EngineStats)), 0)
NOTHING = EngineStats(**ZEROS | {"is_ready": True, "reason": "", "shared_prefixes": ()})
# Shown in words above the numbers, contained in others, or of no use to an operator.
NOT_SHOWN = {"is_ready", "reason", "blocks_cached", "decode_forwards", "live_logs"}


class Client:
    """Answers with what it was given, errors included."""

    def __init__(self, info: EngineInfo | Exception, stats: EngineStats | Exception) -> None:
        self._info, self._stats = info, stats
        self.address = "unix:/0"

    async def info(self) -> EngineInfo:
        return _given(self._info)

    async def stats(self) -> EngineStats:
        return _given(self._stats)


def _given(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value


@pytest.fixture
def shown(client, db, monkeypatch):
    """The page as staff see it, for an engine that answers so."""

    def show(info: Any, stats: Any, more: Sequence[Client] = ()) -> str:
        clients = [Client(info, stats), *more]
        for number, one in enumerate(clients):
            one.address = f"unix:/{number}"
        every = Engines([Engine(cast("EngineClient", one)) for one in clients], 1)
        monkeypatch.setattr(engine_admin, "engines", lambda: every)
        client.force_login(get_user_model().objects.create_superuser("root"))
        response = client.get(PAGE)
        assert response.status_code == 200
        return response.content.decode()

    return show


def test_staff_see_what_the_engine_says(shown):
    stats = replace(NOTHING, prompt_tokens=2000, reused_head_tokens=1500, prefilled_tokens=500)
    page = shown(INFO, replace(stats, shared_prefixes=(SharedPrefixStats("house rules", 300, 0.25, True),)))
    shown_texts = (
        "a-model", "8,192 tokens", "22.5 KB", "1,500 · 75.0 %", "house rules", "300 tokens · 25.0 %",
        "The engine serves.",
    )  # fmt: skip
    for text in shown_texts:
        assert text in page, text


def test_an_engine_that_is_down_is_told_with_its_reason(shown):
    page = shown(
        EngineUnavailable("no connection to unix:/e.sock"), EngineUnavailable("no connection to unix:/e.sock")
    )
    assert "The engine does not serve" in page
    assert "no connection to unix:/e.sock" in page
    assert "<progress" not in page


def test_an_engine_that_does_not_answer_in_time_is_told(shown):
    assert "does not answer within" in shown(INFO, TimeoutError())


def test_of_several_engines_each_is_told_under_its_name(shown):
    page = shown(
        INFO, NOTHING, more=[Client(replace(INFO, model="another"), EngineUnavailable("no way there"))]
    )
    assert "a-model · unix:/0" in page and "another · unix:/1" in page
    assert "The engine serves." in page and "no way there" in page


def test_while_the_model_loads_the_reason_and_the_numbers_are_shown(shown):
    stats = replace(NOTHING, is_ready=False, reason="loading weights", refused=1234)
    page = shown(ModelLoading("loading weights"), stats)
    assert "loading weights" in page and "1,234" in page and "a-model" not in page


def test_what_the_engine_says_is_text_and_never_markup(shown):
    page = shown(replace(INFO, model="<script>alert(1)</script>"), NOTHING)
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page


def test_only_reading_is_possible(admin_client):
    assert admin_client.post(PAGE).status_code == 405


@pytest.mark.parametrize("name", sorted({field.name for field in fields(EngineStats)} - NOT_SHOWN))
def test_every_number_has_its_place(name):
    value: Any = (SharedPrefixStats("p", 1, 0.5, False),) if name == "shared_prefixes" else 7
    base = replace(
        NOTHING, prompt_tokens=100, steps=100, lane_batches=10, blocks_total=50, kv_budget_bytes=10
    )
    base = replace(base, blocks_free=10)
    assert sections_of(INFO, replace(base, **{name: value})) != sections_of(INFO, base)


@pytest.mark.parametrize("name", [field.name for field in fields(TemplateFindings)])
def test_every_finding_of_the_template_is_told_and_the_bad_ones_with_advice(name):
    good = TemplateFindings()
    other = replace(good, **{name: not getattr(good, name)})
    row = next(
        (one, two)
        for one, two in zip(_rows(INFO), _rows(replace(INFO, template=other)), strict=True)
        if one != two
    )
    assert row[1].note, "no advice"


def test_no_answer_is_said_to_be_longer_than_the_window():
    assert {row.label: row.value for row in _rows(replace(INFO, max_context=512))}[
        "Longest answer"
    ] == "512 tokens"


def test_an_unused_engine_divides_by_nothing():
    assert all(row.share in (None, 0.0) for section in sections_of(None, NOTHING) for row in section.rows)


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_labels_of_a_section_differ(language):
    with override(language):
        for section in sections_of(INFO, NOTHING):
            labels = [row.label for row in section.rows]
            assert len(set(labels)) == len(labels), section.title


def test_the_page_of_the_real_site_shows_its_engine(site: LiveSite) -> None:
    make_person(site, "engineer", is_staff=True)
    with closing(sign_in(site, "engineer")) as browser:
        page = browser.get(PAGE)
        assert page.status_code == 200
        assert "scripted" in page.text and "8,192 tokens" in page.text and "The engine serves." in page.text
        assert f'href="{PAGE}"' in browser.get("/admin/").text


@pytest.mark.parametrize(
    "path", ["chatsite/engine_report.py", "chatsite/engine_admin.py", "templates/admin/engine.html"]
)
def test_every_text_of_the_page_is_translated(path: str) -> None:
    with override("zh-hans"):
        assert [text for text in texts_of(ROOT / path) if gettext(text) == text] == []


def _rows(info: EngineInfo) -> list[Any]:
    return [row for section in sections_of(info, NOTHING) for row in section.rows]
