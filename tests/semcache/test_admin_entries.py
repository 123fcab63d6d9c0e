"""The entry browser: found, acted on, edited, evicted in bulk; every change leaves a line in the log."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import timezone

from semcache.admin import evict as admin_evict
from semcache.models import CacheComplaint, CacheEntry, CacheLook
from tests.semcache import factories
from tests.semcache.factories import ask, store
from tests.semcache.test_eviction import left, rows, use

pytestmark = pytest.mark.django_db

ENTRIES = reverse("admin:semcache_cacheentry_changelist")
EVICT_MANY = reverse("admin:semcache_evict_many")


def act_url(entry: CacheEntry, name: str) -> str:
    return reverse("admin:semcache_entry_act", args=[entry.pk, name])


def change_url(entry: CacheEntry) -> str:
    return reverse("admin:semcache_cacheentry_change", args=[entry.pk])


def said() -> list[str]:
    return list(LogEntry.objects.order_by("pk").values_list("change_message", flat=True))


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def reader(client, db):
    """Staff who may look at entries and nothing else."""
    user = get_user_model().objects.create_user(username="reader", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_cacheentry"))
    client.force_login(user)
    return client


def test_entries_are_listed_and_searched_with_few_queries(staff, django_assert_max_num_queries):
    rule = factories.rule(ttl_s=86_400)
    made = uuid4()
    rows(rule, 5)
    factories.row("a" * 64, "b" * 64, rule, question="Where is the needle?", owner="user:7", generation=made)
    with django_assert_max_num_queries(12):
        assert staff.get(ENTRIES).context["cl"].result_count == 6
    rows(rule, 20, name="more")
    with django_assert_max_num_queries(12):
        staff.get(ENTRIES)
    for words in ("needle", "user:7", str(made)):
        assert staff.get(ENTRIES, {"q": words}).context["cl"].result_count == 1
    assert staff.get(ENTRIES, {"q": "\x00"}).status_code in (200, 302)


@pytest.mark.parametrize(
    ("wanted", "num_found"),
    [
        ({"sharing__exact": "public"}, 1),
        ({"model_revision": "large@2"}, 1),
        ({"tenant": "shop"}, 1),
        ({"origin": "answer"}, 3),
        ({"origin": "import"}, 1),
        ({"origin": "promotion"}, 1),
        ({"age": "lt-1h"}, 2),
        ({"age": "lt-1d"}, 4),
        ({"age": "ge-1d"}, 1),
        ({"age": "ge-7d"}, 0),
        ({"age": "nonsense"}, 5),
        ({"origin": "nonsense"}, 5),
    ],
)
def test_entries_are_filtered(staff, wanted, num_found):
    rule = factories.rule(ttl_s=864_000)
    now = timezone.now()
    different = [
        {"sharing": "public"},
        {"model_revision": "large@2", "source": "import"},
        {"tenant": "shop", "source": "promotion", "created_at": now - timedelta(hours=2)},
        {"generation": uuid4(), "created_at": now - timedelta(hours=2)},
        {"created_at": now - timedelta(days=2)},
    ]
    for number, values in enumerate(different):
        factories.row(sha256("scope"), sha256(str(number)), rule, **values)
    assert staff.get(ENTRIES, wanted).context["cl"].result_count == num_found


def test_a_selection_is_evicted_and_pinned_with_a_line_for_each(staff):
    first, second = rows(factories.rule(ttl_s=86_400), 2)
    staff.post(ENTRIES, {"action": "pin", "_selected_action": [second.pk]})
    staff.post(ENTRIES, {"action": "evict", "_selected_action": [first.pk]})
    assert list(CacheEntry.objects.values_list("pk", "is_pinned")) == [(second.pk, True)]
    assert said() == ["is_pinned: True", "evicted"]
    assert list(LogEntry.objects.order_by("pk").values_list("object_id", flat=True)) == [
        str(second.pk),
        str(first.pk),
    ]


@pytest.mark.parametrize(
    ("name", "line", "num_left"),
    [
        ("evict", "evicted", 0),
        ("wrong-hit", "wrong hit: evicted", 0),
        ("pin", "is_pinned: True", 1),
        ("unpin", "is_pinned: False", 1),
    ],
)
def test_a_button_acts_at_once_by_post_only(staff, name, line, num_left):
    (entry,) = rows(factories.rule(ttl_s=86_400), 1)
    assert staff.get(act_url(entry, name)).status_code == 405
    assert staff.post(act_url(entry, name)).status_code == 302
    assert len(left()) == num_left
    assert said() == [line]
    assert f'action="{act_url(entry, name)}"' not in staff.get(ENTRIES).content.decode()


def test_a_wrong_hit_is_a_pair_that_never_matches_again(staff):
    (entry,) = rows(factories.rule(ttl_s=86_400), 1)
    CacheLook.objects.create(
        asked_at=timezone.now(), rule=entry.rule, outcome="hit-semantic", reason="similar", sharing="private",
        tenant="default", model="small", scope=entry.scope, prompt_sha256=sha256("asked"), neighbour=entry.pk,
    )  # fmt: skip
    staff.post(act_url(entry, "wrong-hit"))
    pair = CacheComplaint.objects.get()
    assert (pair.asked_sha256, pair.stored_sha256, pair.why) == (
        sha256("asked"),
        entry.prompt_sha256,
        "wrong-hit",
    )


def test_a_button_returns_to_a_page_of_this_site_only(staff):
    (entry,) = rows(factories.rule(ttl_s=86_400), 1)
    own = reverse("admin:semcache_try_question") + "?text=a"
    assert staff.post(act_url(entry, "pin"), {"next": own}).url == own
    assert staff.post(act_url(entry, "pin"), {"next": "https://elsewhere.example/"}).url == ENTRIES


def test_an_unknown_act_and_an_entry_that_is_gone_do_nothing(staff):
    (entry,) = rows(factories.rule(ttl_s=86_400), 1)
    assert staff.post(act_url(entry, "explode")).status_code == 404
    entry_id = entry.pk
    CacheEntry.objects.all().delete()
    assert staff.post(reverse("admin:semcache_entry_act", args=[entry_id, "evict"])).status_code == 302
    assert said() == []


def test_a_renewed_answer_lives_again_from_now_on(staff):
    rule = factories.rule(ttl_s=3600)
    (entry,) = rows(rule, 1)
    staff.post(ENTRIES, {"action": "renew", "_selected_action": [entry.pk]})
    renewed = CacheEntry.objects.get()
    assert renewed.expires_at - renewed.created_at == timedelta(seconds=3600)
    assert abs(renewed.created_at - timezone.now()) < timedelta(minutes=5)
    assert said() == [f"renewed: expired at {entry.expires_at.isoformat()} before"]


TODAY = "What is the weather today?"


@pytest.mark.parametrize(
    "asked", [{"question": TODAY}, {"question": "and in York?", "context": [TODAY, "Where?"]}]
)
def test_an_answer_for_today_is_not_renewed_past_midnight(staff, asked):
    rule = factories.rule(ttl_s=10 * 86_400)
    entry = factories.row("a" * 64, "b" * 64, rule, **asked)
    staff.post(act_url(entry, "renew"))
    entry.refresh_from_db()
    ends = timezone.localtime(entry.expires_at)
    assert (ends.hour, ends.minute, ends.second) == (0, 0, 0)
    assert ends - timezone.localtime(entry.created_at) <= timedelta(days=1)


@pytest.mark.parametrize("name", ["evict", "wrong-hit", "renew", "pin", "unpin", "promote"])
def test_a_reader_changes_nothing(reader, name):
    (entry,) = rows(factories.rule(ttl_s=86_400), 1)
    assert reader.get(ENTRIES).status_code == 200
    page = reader.get(change_url(entry)).content.decode()
    assert "<textarea" not in page and "formaction" not in page
    assert reader.post(act_url(entry, name)).status_code == 403
    assert reader.get(EVICT_MANY).status_code == 403
    reader.post(ENTRIES, {"action": name.replace("-", "_"), "_selected_action": [entry.pk]})
    assert left() == {entry.pk}
    assert said() == []


def test_an_edited_answer_is_audited_by_hash_and_loses_its_token_ids(staff):
    rule = factories.rule(ttl_s=86_400)
    entry = factories.row(
        "a" * 64,
        "b" * 64,
        rule,
        answer="The old one.",
        token_ids=[1, 2],
        tokenizer="t",
        num_tokens=2,
        took_ms=5,
    )
    form = staff.get(change_url(entry)).context["adminform"].form
    shown = form.initial["answer_sha256"]
    staff.post(change_url(entry), {"answer": "The new one.\r\nSecond line.", "answer_sha256": shown})
    entry.refresh_from_db()
    assert entry.answer == "The new one.\nSecond line."
    assert (entry.token_ids, entry.tokenizer, entry.num_tokens, entry.took_ms) == ([], "", 0, 0)
    assert said() == [f"answer: sha256 {sha256('The old one.')} -> sha256 {sha256(entry.answer)}"]


def test_saving_an_untouched_answer_changes_nothing(staff):
    rule = factories.rule(ttl_s=86_400)
    entry = factories.row(
        "a" * 64, "b" * 64, rule, answer="  One\n\ntwo \n", token_ids=[1], tokenizer="t", num_tokens=1
    )
    shown = staff.get(change_url(entry)).context["adminform"].form.initial["answer_sha256"]
    staff.post(change_url(entry), {"answer": "  One\r\n\r\ntwo \r\n", "answer_sha256": shown})
    entry.refresh_from_db()
    assert (entry.answer, entry.token_ids) == ("  One\n\ntwo \n", [1])
    assert said() == []


def test_an_answer_that_was_refreshed_meanwhile_is_not_overwritten(staff):
    entry = factories.row("a" * 64, "b" * 64, factories.rule(ttl_s=86_400), answer="Seen by the operator.")
    shown = staff.get(change_url(entry)).context["adminform"].form.initial["answer_sha256"]
    CacheEntry.objects.update(answer="Made a moment ago.")
    response = staff.post(change_url(entry), {"answer": "Corrected.", "answer_sha256": shown})
    assert "answer" in response.context["adminform"].form.errors
    assert CacheEntry.objects.get().answer == "Made a moment ago."


@pytest.mark.parametrize("bad", ["", "   ", "x" * 200_001, "\x00"])
def test_a_bad_answer_is_named_at_its_field(staff, bad):
    entry = factories.row("a" * 64, "b" * 64, factories.rule(ttl_s=86_400))
    shown = staff.get(change_url(entry)).context["adminform"].form.initial["answer_sha256"]
    response = staff.post(change_url(entry), {"answer": bad, "answer_sha256": shown})
    assert "answer" in response.context["adminform"].form.errors
    assert CacheEntry.objects.get().answer == "a"


@pytest.mark.django_db(transaction=False)
def test_the_log_never_quotes_a_question(staff):
    (entry,) = rows(factories.rule(ttl_s=86_400), 1, question="My secret illness?")
    staff.post(reverse("admin:semcache_cacheentry_delete", args=[entry.pk]), {"post": "yes"})
    (line,) = LogEntry.objects.all()
    assert line.change_message == "evicted"
    assert "secret" not in line.object_repr
    assert left() == set()


def test_many_are_counted_before_they_go_and_the_log_says_what_they_had_in_common(staff, monkeypatch):
    monkeypatch.setattr(admin_evict, "BATCH", 3)
    rule, other = factories.rule(name="Weather", ttl_s=86_400), factories.rule(ttl_s=86_400)
    going = rows(rule, 7, name="going", owner="user:9")
    staying = [*rows(rule, 2, name="staying"), *rows(other, 2, name="other", owner="user:9")]
    wanted = {"rule": rule.pk, "owner": "user:9"}
    page = staff.get(EVICT_MANY, wanted).content.decode()
    assert "7 stored answers" in page and "Weather" in page
    assert len(left()) == len(going) + len(staying)
    assert staff.post(EVICT_MANY, wanted).status_code == 302
    assert left() == {entry.pk for entry in staying}
    assert said() == [f"evicted 7: rule_id={rule.pk}, owner=user:9"]


@pytest.mark.parametrize(
    ("wanted", "num_left"),
    [
        ({"model_revision": "small@1"}, 0),
        ({"model_revision": "large@1"}, 4),
        ({"tenant": "default"}, 0),
        ({"older_than_h": "1"}, 0),
        ({"older_than_h": "48"}, 4),
        ({"older_than_h": "0"}, 0),
    ],
)
def test_many_are_chosen_by_model_business_line_and_age(staff, wanted, num_left):
    rows(factories.rule(ttl_s=86_400), 4)
    staff.post(EVICT_MANY, wanted)
    assert len(left()) == num_left


@pytest.mark.parametrize("wanted", [{}, {"older_than_h": "-1"}, {"older_than_h": "soon"}, {"rule": "999999"}])
def test_nothing_in_common_is_not_everything(staff, wanted):
    entries = rows(factories.rule(ttl_s=86_400), 2)
    assert staff.post(EVICT_MANY, wanted | {"tenant": ""}).status_code == 200
    assert left() == {entry.pk for entry in entries}


def test_a_full_table_is_shown_without_reading_vectors(staff, django_assert_max_num_queries):
    use(rows(factories.rule(ttl_s=86_400), 1)[0])
    with django_assert_max_num_queries(12) as queries:
        staff.get(ENTRIES)
    assert not any('."embedding"' in query["sql"] for query in queries.captured_queries)


async def test_an_edit_and_an_eviction_act_at_the_next_question(committed):
    await factories.arule(ttl_s=86_400)
    entry_id = await store("What is a black hole?", "A star.")
    await CacheEntry.objects.filter(pk=entry_id).aupdate(answer="Edited.")
    decision = await ask("What is a black hole?")
    assert decision.hit is not None and decision.hit.answer == "Edited."
    await CacheEntry.objects.filter(pk=entry_id).adelete()
    assert (await ask("What is a black hole?")).hit is None


def test_the_pages_hold_no_inline_script_or_style(staff):
    (entry,) = rows(factories.rule(ttl_s=86_400), 1)
    for url in (ENTRIES, change_url(entry), EVICT_MANY, EVICT_MANY + "?tenant=default"):
        page = staff.get(url).content.decode()
        assert " style=" not in page and " onclick=" not in page
        assert all('type="application/json"' in tag or "src=" in tag for tag in page.split("<script")[1:])
