"""The ledger as people see it: the pages, the admin, and tables that no spreadsheet runs."""

from __future__ import annotations

import csv
import io
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.http import StreamingHttpResponse
from django.test import Client

from chatsite.accounts.ledger import spreadsheet
from chatsite.accounts.ledger.booking import AGAIN
from chatsite.accounts.models import Price, Tenant, UsageDay, UsageRecord, User
from chatsite.accounts.usage_chart import HEIGHT, chart
from semcache.imports.cells import FORMULA_SIGNS

MakeUser = Callable[..., User]
EVIL = '=HYPERLINK("http://evil.example";"click")'


def use(user: User, **fields: Any) -> UsageRecord:
    defaults = {
        "tenant": user.tenant,
        "model": "tiny",
        "origin": "model",
        "state": "complete",
        "currency": "USD",
    }
    return UsageRecord.objects.create(generation=uuid.uuid4(), user=user, **defaults | fields)


def text_of(response: Any) -> str:
    assert response.status_code == 200, response.status_code
    return str(response.content.decode())


def test_the_page_shows_ones_own_usage_and_nobody_elses(client: Client, make_user: MakeUser) -> None:
    ann, bob = make_user("ann"), make_user("bob")
    use(ann, generated_tokens=1234, device_seconds=5.5, cost=Decimal("1.5"))
    use(ann, origin="exact", saved_tokens=77, saved_cost=Decimal("0.25"))
    use(bob, generated_tokens=98765, model="secret-model")
    client.force_login(ann)
    page = text_of(client.get("/usage"))
    for shown in ("1,234", "5.5", "1.5000 USD", "0.2500 USD", ">77<", "tiny", "In the browser"):
        assert shown in page, shown
    assert "98,765" not in page and "secret-model" not in page and "/usage/all" not in page
    assert "<script>" not in page and "style=" not in page
    policy = client.get("/usage").headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy and "unsafe" not in policy


def test_without_a_price_there_is_no_cost_and_not_one_of_nothing(client: Client, make_user: MakeUser) -> None:
    ann = make_user("ann")
    use(ann, generated_tokens=12, currency="")
    client.force_login(ann)
    page = text_of(client.get("/usage"))
    assert "0.0000" not in page and page.count('<td title="No price was set.">–</td>') == 6


def test_a_small_cost_is_not_shown_as_nothing(client: Client, make_user: MakeUser) -> None:
    ann = make_user("ann")
    use(ann, generated_tokens=12, cost=Decimal("0.00004"))
    client.force_login(ann)
    page = text_of(client.get("/usage"))
    assert "0.0000" not in page
    assert page.count("<td>&lt; 0.0001 USD</td><td>0 USD</td>") == 3


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_a_large_cost_is_grouped_in_every_language(
    client: Client, make_user: MakeUser, language: str
) -> None:
    ann = make_user("ann")
    use(ann, cost=Decimal("1234567.5"))
    client.force_login(ann)
    page = text_of(client.get("/usage", headers={"Accept-Language": language}))
    assert page.count("1,234,567.5000 USD") == 4


def test_where_answers_came_from_is_said_in_the_readers_words(client: Client, make_user: MakeUser) -> None:
    ann = make_user("ann")
    for origin in ("model", "exact", "semantic", AGAIN, ""):
        use(ann, origin=origin)
    client.force_login(ann)
    for language, names in (
        ("en", ("The model", "Cache, same question", "Cache, similar question", "The model, for the cache")),
        ("zh-hans", ("模型", "缓存，相同问题", "缓存，相似问题", "模型，为缓存更新")),
    ):
        page = text_of(client.get("/usage", headers={"Accept-Language": language}))
        for name in names:
            assert f'<th scope="row">{name}</th>' in page, name


def test_staff_see_everybodys_by_business_line_and_others_see_that_there_is_nothing(
    client: Client, make_user: MakeUser
) -> None:
    shop = Tenant.objects.create(slug="shop", name="Shop")
    use(make_user("ann", tenant=shop), cost=Decimal(3))
    use(make_user("bob"), cost=Decimal(4))
    client.force_login(User.objects.get(username="ann"))
    assert client.get("/usage/all").status_code == 404
    client.force_login(make_user("root", is_staff=True))
    page = text_of(client.get("/usage/all?days=7"))
    for shown in ("shop", "ann", "bob", "3.0000 USD", "7.0000 USD", "By business line"):
        assert shown in page, shown
    client.logout()
    for path in ("/usage", "/usage/all"):
        assert client.get(path)["location"].startswith("/signin?")
        assert client.post(path).status_code == 405


def test_the_page_speaks_chinese_and_survives_odd_periods(client: Client, make_user: MakeUser) -> None:
    client.force_login(make_user())
    assert "你的用量" in text_of(client.get("/usage", headers={"Accept-Language": "zh-hans"}))
    for days in ("0", "-1", "9" * 30, "x", "", "７"):
        assert "Nothing was used in this time." in text_of(client.get("/usage", {"days": days}))


def test_a_page_takes_a_bounded_number_of_queries(
    client: Client, make_user: MakeUser, django_assert_max_num_queries: Any
) -> None:
    root = make_user("root", is_staff=True)
    for number in range(20):
        use(make_user(f"user{number}"), model=f"model{number}")
    client.force_login(root)
    with django_assert_max_num_queries(25):
        client.get("/usage/all")


def test_a_month_without_use_is_a_sentence_and_no_empty_chart(client: Client, make_user: MakeUser) -> None:
    ann = make_user("ann")
    client.force_login(ann)
    page = text_of(client.get("/usage"))
    assert "Nothing was used in this time." in page and "<svg viewBox" not in page and "<table" not in page
    use(ann, generated_tokens=12)
    page = text_of(client.get("/usage"))
    assert "Nothing was used" not in page and page.count("<table") == 3 and "<svg viewBox" in page


def test_columns_of_the_chart_stack_up_to_their_day() -> None:
    drawn = chart(["mon", "tue", "wed"], {"made": [10, 0, 5], "read": [30, 0, 5]})
    assert [column.total for column in drawn.columns] == [40, 0, 10]
    assert [(bar.series, bar.y, bar.height) for bar in drawn.columns[0].bars] == [
        ("made", 90.0, 30.0),
        ("read", 0.0, 90.0),
    ]
    assert not drawn.columns[1].bars and drawn.columns[2].bars[1].y == HEIGHT * 0.75
    assert drawn.columns[-1].x + drawn.bar_width == drawn.width  # the last column ends where the dates do
    assert chart(["mon"], {"made": [0]}).top == 0


@pytest.mark.parametrize("start", FORMULA_SIGNS)
def test_a_text_that_a_spreadsheet_would_run_is_marked_as_text(start: str) -> None:
    assert spreadsheet.cell(f"{start}1+1") == f"'{start}1+1"
    assert spreadsheet.cell(f"  {start}1+1") == f"'  {start}1+1"
    assert spreadsheet.cell(f"a{start}") == f"a{start}"


def test_numbers_stay_numbers() -> None:
    cells = [spreadsheet.cell(value) for value in (-5, -0.5, Decimal("-1E-9"), None, "", "ann")]
    assert cells == ["-5", "-0.5", "-0.000000001", "", "", "ann"]


def test_the_ledger_in_the_admin_is_read_and_taken_away_but_never_changed(
    client: Client, make_user: MakeUser, django_assert_max_num_queries: Any
) -> None:
    root = User.objects.create_superuser("root", password="x")
    row = use(make_user("ann"), model=EVIL, cost=Decimal("0.000000001"))
    for number in range(10):
        use(make_user(f"user{number}"))
    day = UsageDay.objects.create(
        day="2026-01-01", tenant=row.tenant, kind="answer", model=EVIL, origin="model"
    )
    client.force_login(root)
    for name, pk in (("usagerecord", row.pk), ("usageday", day.pk)):
        path = f"/admin/accounts/{name}"
        with django_assert_max_num_queries(12):
            assert EVIL.split('"', maxsplit=1)[0] in text_of(client.get(f"{path}/"))
        assert client.get(f"{path}/add/").status_code == 403
        assert client.post(f"{path}/{pk}/change/", {"model": "x"}).status_code == 403
        assert client.post(f"{path}/{pk}/delete/", {"post": "yes"}).status_code == 403
        taken = client.post(f"{path}/", {"action": "as_csv", "_selected_action": [pk]})
        assert isinstance(taken, StreamingHttpResponse)
        table = b"".join(taken).decode()  # type: ignore[arg-type]
        header, only = csv.reader(io.StringIO(table.removeprefix("\ufeff")))
        assert only[header.index("model")] == f"'{EVIL}" and only[header.index("tenant")] == row.tenant.slug
    assert UsageRecord.objects.get(pk=row.pk).model == EVIL


def test_staff_set_prices(client: Client, db: None) -> None:
    client.force_login(User.objects.create_superuser("root", password="x"))
    fields = {
        "model": "qwen*", "currency": "EUR", "per_million_prompt": "0.1", "per_million_reused": "0.05",
        "per_million_generated": "0.4", "per_device_hour": "2.5", "valid_from_0": "2026-01-01", "valid_from_1": "00:00",
    }  # fmt: skip
    assert client.post("/admin/accounts/price/add/", fields).status_code == 302
    price = Price.objects.get()
    assert (price.model, price.currency, price.per_device_hour) == ("qwen*", "EUR", Decimal("2.5"))
    wrong = client.post("/admin/accounts/price/add/", fields | {"per_device_hour": "-1", "model": "x"})
    assert wrong.status_code == 200 and Price.objects.count() == 1
