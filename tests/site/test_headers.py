"""Headers of every kind of answer, static files, and the JSON doors' errors before any view."""

from __future__ import annotations

import httpx2
import pytest

from tests.livesite import LiveSite

PATHS = (
    "/signin",
    "/signup",
    "/",
    "/nothing",
    "/admin/login/",
    "/api/conversations",
    "/v1/models",
    "/health/live",
)


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_is_guarded(site: LiveSite, path: str) -> None:
    headers = httpx2.get(f"{site.url}{path}", timeout=60).headers
    policy = headers["content-security-policy"]
    for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
        assert part in policy
    assert "unsafe-inline" not in policy and "unsafe-eval" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["x-frame-options"] == "DENY"
    assert "camera=()" in headers["permissions-policy"]
    assert headers["x-request-id"].startswith("req_")
    assert "no-store" in headers["cache-control"] or "private" in headers["cache-control"]


def test_two_requests_have_two_ids(site: LiveSite) -> None:
    given = {"X-Request-Id": "mine\r"[:4]}
    ids = {httpx2.get(f"{site.url}/health/live", headers=given).headers["x-request-id"] for _ in range(2)}
    assert len(ids) == 2 and "mine" not in ids


def test_the_session_cookie_is_out_of_reach_of_scripts(site: LiveSite) -> None:
    with httpx2.Client(base_url=site.url, timeout=60) as browser:
        browser.get("/signin")
        form = {"csrfmiddlewaretoken": browser.cookies["csrftoken"]}
        cookies = browser.post("/guest", data=form).headers.get_list("set-cookie")
    session = next(cookie for cookie in cookies if cookie.startswith("sessionid="))
    assert "HttpOnly" in session and "SameSite=Lax" in session


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_static_files_are_served_whole(site: LiveSite, method: str) -> None:
    response = httpx2.request(method, f"{site.url}/static/admin/css/base.css", timeout=60)
    assert response.status_code == 200 and response.headers["content-type"].startswith("text/css")
    assert int(response.headers["content-length"]) > 1000
    assert (len(response.content) > 1000) is (method == "GET")


@pytest.mark.parametrize(
    "path", ["/static/nothing.js", "/static/../manage.py", "/static/%2e%2e/manage.py", "/static/"]
)
def test_nothing_else_is_served(site: LiveSite, path: str) -> None:
    assert httpx2.get(f"{site.url}{path}", timeout=60).status_code == 404


@pytest.mark.parametrize(
    "path", ["/api/nothing", "/api/conversations/not-a-uuid", "/v1/x", "/api/messages/1"]
)
@pytest.mark.parametrize("host", ["127.0.0.1", "evil.example"])
def test_the_json_doors_never_answer_with_a_page(site: LiveSite, path: str, host: str) -> None:
    response = httpx2.get(f"{site.url}{path}", headers={"Host": host, "Accept": "text/html"}, timeout=60)
    assert response.status_code == (404 if host == "127.0.0.1" else 400)
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}
