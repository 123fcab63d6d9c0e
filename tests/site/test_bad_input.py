"""Bad requests to /api with a session: error objects, no 500, and the site goes on."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import httpx2
import pytest

from tests.livesite import LiveSite
from tests.patience import PATIENCE_S
from tests.site.conftest import Property, give, make_person, sign_in

ROWS = Property()


@pytest.fixture(scope="module")
def browser(site: LiveSite) -> Iterator[httpx2.Client]:
    make_person(site, "clumsy")
    give(site, "clumsy", ROWS)
    signed_in = sign_in(site, "clumsy")
    yield signed_in
    signed_in.close()


BODIES = {
    "not json": b"{bad",
    "nothing": b"",
    "a list": b"[]",
    "nul": rb'{"title":"a\u0000b"}',
    "half a pair": rb'{"title":"ok \ud83d end"}',
    "deep": b"[" * 50_000,
    "5,000 digits": b'{"title":' + b"1" * 5000 + b"}",
    "a number": b'{"title":7}',
    "too long": b'{"title":"' + b"x" * 5000 + b'"}',
    "a foreign leaf": f'{{"active_leaf":"{uuid4()}"}}'.encode(),
    "not an id": b'{"active_leaf":"nobody"}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_bad_body_is_a_clear_400(browser: httpx2.Client, body: bytes) -> None:
    response = browser.patch(f"/api/conversations/{ROWS.conversation}", content=body)
    assert 400 <= response.status_code < 500, response.text
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}


def test_a_huge_body_is_413(browser: httpx2.Client) -> None:
    response = browser.patch(
        f"/api/conversations/{ROWS.conversation}", content=b'"' + b"x" * 3_000_000 + b'"'
    )
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "body_too_large"


@pytest.mark.parametrize(
    "query", ["q=%00", "q=" + "x" * 5000, "q=%ED%A0%80", "cursor=nonsense", "cursor=%00", "archived=maybe"]
)
def test_an_odd_search_is_no_500(browser: httpx2.Client, query: str) -> None:
    response = browser.get(f"/api/conversations?{query}")
    assert response.status_code in (200, 400, 413), response.text


@pytest.mark.parametrize(
    "over_posted", [{"owner": 1}, {"owner_id": 1}, {"id": str(uuid4())}, {"created_at": "2000-01-01"}]
)
def test_what_is_not_offered_is_not_changed(
    site: LiveSite, browser: httpx2.Client, over_posted: dict
) -> None:
    before = site.sql(
        "SELECT id, owner_id, created_at FROM chat_conversation WHERE id = %s", ROWS.conversation
    )
    browser.patch(f"/api/conversations/{ROWS.conversation}", json=over_posted | {"title": "mine"})
    after = site.sql(
        "SELECT id, owner_id, created_at FROM chat_conversation WHERE id = %s", ROWS.conversation
    )
    assert before == after


@pytest.mark.parametrize(
    "body",
    [{}, {"name": ""}, {"name": "x" * 101}, {"name": "x", "scopes": []}, {"name": "x", "scopes": ["cache-admin"]},
     {"name": "x", "scopes": ["root"]}, {"name": "x", "days": 0}, {"name": "x", "days": 10**9}, {"name": 5}],
)  # fmt: skip
def test_a_key_that_cannot_be_is_not_made(site: LiveSite, browser: httpx2.Client, body: dict) -> None:
    response = browser.post("/api/keys", json=body)
    assert response.status_code == 400, response.text
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}


def test_a_key_is_made_shown_once_used_and_revoked(site: LiveSite, browser: httpx2.Client) -> None:
    made = browser.post("/api/keys", json={"name": "laptop", "days": 2}).json()
    headers = {"Authorization": f"Bearer {made['key']}"}
    assert httpx2.get(f"{site.url}/v1/models", headers=headers, timeout=PATIENCE_S).status_code == 200
    listed = browser.get("/api/keys").text
    assert made["prefix"] in listed and made["key"] not in listed
    assert browser.delete(f"/api/keys/{made['id']}").status_code == 204
    assert httpx2.get(f"{site.url}/v1/models", headers=headers, timeout=PATIENCE_S).status_code == 401


def test_guests_get_no_keys(site: LiveSite) -> None:
    with httpx2.Client(base_url=site.url, timeout=PATIENCE_S) as guest:
        guest.get("/signin")
        guest.post("/guest", data={"csrfmiddlewaretoken": guest.cookies["csrftoken"]})
        headers = {"X-CSRFToken": guest.cookies["csrftoken"]}
        assert guest.get("/api/keys").status_code == 200
        assert guest.post("/api/keys", json={"name": "x"}, headers=headers).status_code == 400


def test_usage_adds_up(site: LiveSite, browser: httpx2.Client) -> None:
    key = site.key("clumsy")
    body = {
        "model": "scripted",
        "messages": [{"role": "user", "content": f"usage {uuid4()}"}],
        "temperature": 0,
    }
    for _ in range(2):
        httpx2.post(
            f"{site.url}/v1/chat/completions",
            json=body,
            headers={"Authorization": f"Bearer {key}"},
            timeout=PATIENCE_S,
        )
    (totals,) = browser.get("/api/usage").json()["totals"]
    assert (totals["answers"], totals["cache_hits"]) == (2, 1)
    assert totals["generated_tokens"] > 0 and totals["prompt_tokens"] > 0


def test_the_docs_show_no_foreign_asset(browser: httpx2.Client) -> None:
    page = browser.get("/api/docs").text
    assert "swagger" in page.lower()
    assert 'src="http' not in page and 'href="http' not in page
    assert browser.get("/api/openapi.json").json()["info"]["title"] == "Rill"


def test_a_form_where_json_is_meant_is_no_mistake_of_the_server(browser: httpx2.Client) -> None:
    for form in (
        {"data": {"name": "x"}},
        {"files": {"name": ("x", b"x")}},
        {"content": b"", "headers": NO_BOUNDARY},
    ):
        response = browser.post("/api/keys", **form)
        assert response.status_code == 400, response.text
        assert response.json()["error"]["code"] in ("invalid_request", "invalid_value")


@pytest.mark.parametrize("body", [b"--b--\r\n", b"xx", b"--b\r\nContent-Disposition: form-data\r\n\r\n1"])
@pytest.mark.parametrize("path", ["/api/conversations", "/v1/chat/completions", "/api/cache/imports"])
def test_a_broken_form_is_told_as_everything_is(browser: httpx2.Client, path: str, body: bytes) -> None:
    """Its server reads no forms: by itself it ends the connection at one that it cannot read."""
    broken = {"Content-Type": "multipart/form-data; boundary=b"}
    response = browser.post(path, content=body, headers=broken)
    assert 400 <= response.status_code < 500
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}
    assert response.headers["x-request-id"]


NO_BOUNDARY = {"Content-Type": "multipart/form-data"}
