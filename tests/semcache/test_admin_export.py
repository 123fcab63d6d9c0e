"""Entries leave as JSON lines or CSV; nothing in a CSV is a formula, and the log says who took how many."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse

from semcache.admin import entries as admin_entries
from semcache.imports.cells import neutralised, plain
from tests.semcache import factories
from tests.semcache.test_eviction import rows, use

pytestmark = pytest.mark.django_db

ENTRIES = reverse("admin:semcache_cacheentry_changelist")


def exported(client, name, entries):
    return client.post(
        ENTRIES, {"action": f"export_{name}", "_selected_action": [entry.pk for entry in entries]}
    )


def test_json_lines_keep_every_text_as_it_is(staff):
    rule = factories.rule(name="Weather", ttl_s=86_400)
    chosen = rows(rule, 2, question='=HYPERLINK("x")\n今天', answer="第一行\r\n\u2028end")
    use(chosen[0])
    response = exported(staff, "jsonl", chosen)
    first, second = [json.loads(line) for line in response.content.decode().split("\n") if line]
    assert (first["question"], first["answer"]) == ('=HYPERLINK("x")\n今天', "第一行\r\n\u2028end")
    assert (first["rule"], first["hits"], second["hits"]) == ("Weather", 1, 0)
    assert "attachment" in response["Content-Disposition"]
    assert LogEntry.objects.get().change_message == "exported 2 as jsonl"


def test_csv_is_read_back_cell_by_cell_and_holds_no_formula(staff):
    chosen = rows(
        factories.rule(ttl_s=86_400),
        1,
        question="=1+1",
        answer='Say "hi",\nthen go',
        tenant="+shop",
        owner="@you",
    )
    text = exported(staff, "csv", chosen).content.decode("utf-8-sig")
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    assert (row["question"], row["tenant"], row["owner"]) == ("'=1+1", "'+shop", "'@you")
    assert row["answer"] == 'Say "hi",\nthen go'


@pytest.mark.parametrize(
    "sign", ["=", "+", "-", "@", "\t", "\r", "\n", "  =", "＝", "＋", "－", "＠", "|", "\n@"]
)
def test_what_a_spreadsheet_would_calculate_gets_an_apostrophe(sign):
    assert neutralised(f"{sign}cmd") == f"'{sign}cmd"
    assert plain(f"'{sign}cmd") == f"{sign}cmd"


@pytest.mark.parametrize("text", ["", "a=b", "1 - 2", "今天", "'quoted"])
def test_other_cells_stay_as_they_are(text):
    assert neutralised(text) == plain(text) == text


def test_too_many_are_refused_in_words_and_nothing_is_cut(staff, monkeypatch):
    monkeypatch.setattr(admin_entries, "MAX_ENTRIES", 2)
    response = exported(staff, "csv", rows(factories.rule(ttl_s=86_400), 3))
    assert response.status_code == 302
    assert not LogEntry.objects.exists()


def test_an_export_reads_no_vectors_and_asks_few_queries(staff, django_assert_max_num_queries):
    chosen = rows(factories.rule(ttl_s=86_400), 30)
    with django_assert_max_num_queries(12) as queries:
        exported(staff, "csv", chosen)
    assert not any('."embedding"' in query["sql"] for query in queries.captured_queries)
