"""The page "Import answers": nothing is stored before it was shown, and what is not taken says why."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from semcache import pipeline, service, tasks
from semcache.admin.imports import NUM_SHOWN, REFUSALS, TROUBLES
from semcache.imports import batches as imports
from semcache.imports import file as import_file
from semcache.imports import rows as import_rows
from semcache.imports.file import Trouble
from semcache.imports.rows import Refusal
from semcache.models import CacheEntry, CacheImport, CacheRule
from tests.semcache import factories

pytestmark = pytest.mark.django_db

PAGE = reverse("admin:semcache_import")
CSV = "question,answer\nWhat is rain?,Water.\nHow do I pay?,Here.\n什么是雨？,水。\n"


@pytest.fixture(autouse=True)
def lent(settings, monkeypatch) -> None:
    """An embedder, and look-ups inside the test's own transaction."""
    settings.SEMCACHE_ASKED_BY = "tests.semcache.lender.as_asked"
    settings.SEMCACHE_RUN_BY = ""

    def here(work: Callable[..., Any], *args: Any, **named: Any) -> Awaitable[Any]:
        return sync_to_async(work)(*args, **named)

    for module in (service, pipeline):
        monkeypatch.setattr(module, "in_database", here)
    monkeypatch.setattr(import_rows, "in_database", here)


@pytest.fixture
def sent(monkeypatch) -> list[bool]:
    """How often a worker was called."""
    calls: list[bool] = []
    monkeypatch.setattr(tasks.store_imports, "delay", lambda: calls.append(True))
    return calls


@pytest.fixture
def rule(staff) -> CacheRule:
    return factories.rule(name="Everything", sharing="public", ttl_s=86_400)


def uploaded(client: Any, rule: CacheRule, content: str | bytes = CSV, **values: Any) -> Any:
    content = content.encode() if isinstance(content, str) else content
    file = SimpleUploadedFile("answers.csv", content)
    return client.post(PAGE, {"rule": rule.pk, "file": file} | values)


def carried(response: Any, **changes: Any) -> dict[str, Any]:
    """What the preview's form sends back."""
    preview, form = response.context["preview"], response.context["form"]
    values = {
        name: form[name].value() or "" for name in ("rule", "tenant", "system_prompt", "may_name_people")
    }
    return values | {"file_name": preview.file_name, "rows": preview.carried} | changes


def test_a_preview_shows_what_is_taken_and_stores_nothing(staff, rule):
    response = uploaded(staff, rule)
    preview = response.context["preview"]
    assert (preview.num_rows, preview.num_accepted) == (3, 2)
    page = response.content.decode()
    assert "2 of 3 rows can be imported" in page and "Nothing is stored yet" in page
    assert [one.row.question for one in preview.refused] == ["How do I pay?"]
    assert preview.refused[0].why.endswith("own: it speaks of somebody, or holds what leads to a person")
    assert page.count("such a question is its asker") == 3, "the reason, the first rows, the refused ones"
    assert not CacheEntry.objects.exists() and not CacheImport.objects.exists()
    assert not LogEntry.objects.exists()


def test_an_import_is_begun_logged_and_stored_by_a_worker(
    staff, rule, sent, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        response = staff.post(PAGE, carried(uploaded(staff, rule)))
    assert response.url == f"{PAGE}?watch=1"
    assert sent == [True]
    assert LogEntry.objects.get().change_message == "import of answers.csv: 3 rows, 1 refused"
    assert LogEntry.objects.get().object_id == str(rule.pk)
    watching = staff.get(response.url).content.decode()
    assert "waiting" in watching and 'http-equiv="refresh"' in watching
    tasks.store_imports()
    done = staff.get(response.url).content.decode()
    assert "<td>done</td>" in " ".join(done.split()).replace(" </td>", "</td>").replace("<td> ", "<td>")
    assert 'http-equiv="refresh"' not in done
    stored = CacheEntry.objects.order_by("id").values_list("question", "answer", "source", "took_ms")
    assert list(stored) == [("what is rain?", "Water.", "import", 0.0), ("什么是雨？", "水。", "import", 0.0)]


def test_a_broker_that_is_away_leaves_the_import_to_the_schedule(
    staff, rule, monkeypatch, django_capture_on_commit_callbacks
):
    def broken() -> None:
        raise ConnectionError("no broker")

    monkeypatch.setattr(tasks.store_imports, "delay", broken)
    with django_capture_on_commit_callbacks(execute=True):
        assert staff.post(PAGE, carried(uploaded(staff, rule))).status_code == 302
    assert imports.unfinished()


def test_only_the_first_rows_are_shown(staff, rule):
    rows = "".join(f"What is word{number}?,A word.\n" for number in range(NUM_SHOWN + 5))
    preview = uploaded(staff, rule, f"question,answer\n{rows}").context["preview"]
    assert (len(preview.shown), preview.num_accepted) == (NUM_SHOWN, NUM_SHOWN + 5)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("问题,答案\n什么是雨？,水。\n".encode("gbk"), "not UTF-8"),
        (b"a,b\n1,2\n", "must name the columns"),
        (b"question,answer\n", "no rows"),
        (b'question,answer\na,"b\n', "Line 2: The quotation marks"),
    ],
)
def test_a_file_that_can_not_be_read_is_refused_at_its_field(staff, rule, content, words):
    response = uploaded(staff, rule, content)
    (error,) = response.context["form"].errors["file"]
    assert words in error
    assert not response.context["preview"]


def test_limits_are_named_and_kept(staff, rule, settings, monkeypatch):
    assert "20000 rows and 976.6\xa0KB" in str(staff.get(PAGE).context["form"]["file"].help_text)
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    assert "file" in uploaded(staff, rule, CSV + "x" * 100).context["form"].errors
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 2_000_000
    monkeypatch.setattr(import_file, "MAX_ROWS", 2)
    assert "file" in uploaded(staff, rule).context["form"].errors


def test_only_rules_that_share_are_offered(staff, rule):
    factories.rule(name="Mine", sharing="private")
    factories.rule(name="Never", sharing="public", mode="off")
    factories.rule(name="Sleeping", sharing="public", is_enabled=False)
    promoted = factories.rule(name="Later", sharing="promoted")
    offered = {choice.pk for choice in staff.get(PAGE).context["form"].fields["rule"].queryset}
    assert offered == {rule.pk, promoted.pk}


def test_a_rule_of_a_business_line_needs_to_know_which(staff, rule):
    CacheRule.objects.update(sharing="tenant")
    assert "tenant" in uploaded(staff, rule).context["form"].errors
    assert uploaded(staff, rule, tenant="1").context["preview"].num_accepted == 2
    CacheRule.objects.update(tenant="2")
    service.forget_rules()
    assert uploaded(staff, rule).context["form"].cleaned_data["tenant"] == "2"


def test_more_than_the_rule_keeps_is_not_begun(staff, rule, sent):
    CacheRule.objects.update(capacity=1)
    response = uploaded(staff, rule)
    assert "keeps 1 answers" in response.content.decode()
    assert staff.post(PAGE, carried(response)).context["preview"].problem
    assert not CacheImport.objects.exists() and sent == []


def test_personal_data_in_answers_is_refused_unless_it_is_meant_for_everybody(staff, rule):
    content = "question,answer\nWho answers at night?,Write to ines@example.org.\n"
    refused = uploaded(staff, rule, content).context["preview"]
    assert refused.problem and "personal data in the answer: e-mail" in refused.refused[0].why
    assert uploaded(staff, rule, content, may_name_people="on").context["preview"].num_accepted == 1


@pytest.mark.parametrize("rows", ["", "[", "5", '[["a"]]', '[[1, "a", "b", "c"]]', '{"a": 1}'])
def test_rows_that_are_not_the_previews_begin_nothing(staff, rule, rows):
    response = staff.post(PAGE, carried(uploaded(staff, rule), rows=rows))
    assert response.status_code == 200
    assert not CacheImport.objects.exists()


def test_what_was_stored_meanwhile_is_not_begun_again(staff, rule):
    values = carried(uploaded(staff, rule))
    staff.post(PAGE, values)
    tasks.store_imports()
    assert "No row can be imported" in staff.post(PAGE, values).content.decode()
    assert CacheImport.objects.count() == 1


def test_without_an_engine_the_page_says_so_and_keeps_nothing(staff, rule, settings):
    settings.SEMCACHE_ASKED_BY = "tests.semcache.lender.nobody"
    response = uploaded(staff, rule)
    assert "does not say what it serves" in response.content.decode()
    assert not response.context["preview"]


def test_answers_for_another_model_are_told_apart(staff, rule):
    factories.row("a" * 64, "b" * 64, rule, source="import")
    factories.row("a" * 64, "c" * 64, rule, source="import", model_revision="old@0")
    factories.row("a" * 64, "d" * 64, rule)
    rows = {
        row["model_revision"]: (row["num"], row["is_served"]) for row in staff.get(PAGE).context["revisions"]
    }
    assert rows == {"small@1": (1, True), "old@0": (1, False)}
    assert "not found any more" in staff.get(PAGE).content.decode()
    url = reverse("admin:semcache_cacheentry_changelist")
    found = staff.get(url, {"source__exact": "import", "rule__id__exact": rule.pk, "model_revision": "old@0"})
    assert found.context["cl"].result_count == 1


@pytest.mark.parametrize("permissions", [[], ["view_cacherule"], ["change_cacheentry", "view_cacheentry"]])
def test_it_takes_the_permission_to_add_entries(client, permissions):
    rule = factories.rule(sharing="public")
    user = get_user_model().objects.create_user(username="some", is_staff=True)
    user.user_permissions.add(*Permission.objects.filter(codename__in=permissions))
    client.force_login(user)
    assert client.get(PAGE).status_code == 403
    assert uploaded(client, rule).status_code == 403
    rows = json.dumps([[2, "What is rain?", "Water."]])
    assert client.post(PAGE, {"rule": rule.pk, "file_name": "a", "rows": rows}).status_code == 403
    assert not CacheImport.objects.exists()


def test_the_page_is_offered_to_whom_it_serves(staff, client, rule):
    rules = reverse("admin:semcache_cacherule_changelist")
    assert PAGE in staff.get(rules).content.decode()
    user = get_user_model().objects.create_user(username="some", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_cacherule"))
    client.force_login(user)
    assert PAGE not in client.get(rules).content.decode()


def test_every_code_has_words():
    assert set(TROUBLES) == set(Trouble)
    assert set(REFUSALS) == set(Refusal)
