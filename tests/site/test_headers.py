"""Headers of every kind of answer, static files, and the JSON doors' errors before any view."""

from __future__ import annotations

import httpx2
import pytest

from tests.livesite import LiveSite
from tests.patience import PATIENCE_S

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


def guard(headers: httpx2.Headers) -> None:
    """Fails where a header is missing that every answer has."""
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


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_is_guarded(site: LiveSite, path: str) -> None:
    headers = httpx2.get(f"{site.url}{path}", timeout=PATIENCE_S).headers
    guard(headers)
    assert "no-store" in headers["cache-control"] or "private" in headers["cache-control"]


CLASSES = (
    # method, path, headers, body, status: one of each kind of answer that the site gives
    ("GET", "/", {}, None, 302),
    ("HEAD", "/signin", {}, None, 200),
    ("OPTIONS", "/signin", {}, None, 405),
    ("GET", "/signout", {}, None, 405),
    ("POST", "/signin", {}, b"x=1", 403),
    ("GET", "/oidc/start", {}, None, 404),
    ("GET", "/static/nothing.js", {}, None, 404),
    ("GET", "/static/admin/css/base.css", {}, None, 200),
    ("GET", "/signin", {"Host": "evil.example"}, None, 400),
    ("GET", "/api/keys", {}, None, 401),
    ("POST", "/api/keys", {}, b"{}", 401),
    ("POST", "/v1/chat/completions", {}, b"{", 401),
    ("DELETE", "/v1/models", {}, None, 401),
    ("GET", "/api/openapi.json", {}, None, 302),
    ("GET", "/metrics", {"X-Forwarded-For": "203.0.113.1"}, None, 401),
    ("GET", "/health/ready", {}, None, 200),
)


def test_answers_of_every_class_are_guarded(site: LiveSite) -> None:
    for method, path, headers, body, status in CLASSES:
        answer = httpx2.request(
            method, f"{site.url}{path}", headers=headers, content=body, timeout=PATIENCE_S
        )
        assert answer.status_code == status, (method, path)
        guard(answer.headers)
        is_static = path.startswith("/static/") and status == 200
        assert (
            is_static
            or "no-store" in answer.headers["cache-control"]
            or "private" in answer.headers["cache-control"]
        )


def test_streams_are_guarded(site: LiveSite) -> None:
    body = {
        "model": "scripted",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "max_tokens": 2,
    }
    bearer = {"Authorization": f"Bearer {site.key('streamer')}"}
    answer = httpx2.post(f"{site.url}/v1/chat/completions", json=body, headers=bearer, timeout=PATIENCE_S)
    assert answer.headers["content-type"].startswith("text/event-stream")
    guard(answer.headers)


def test_two_requests_have_two_ids(site: LiveSite) -> None:
    given = {"X-Request-Id": "mine\r"[:4]}
    ids = {httpx2.get(f"{site.url}/health/live", headers=given).headers["x-request-id"] for _ in range(2)}
    assert len(ids) == 2 and "mine" not in ids


def test_the_session_cookie_is_out_of_reach_of_scripts(site: LiveSite) -> None:
    with httpx2.Client(base_url=site.url, timeout=PATIENCE_S) as browser:
        browser.get("/signin")
        form = {"csrfmiddlewaretoken": browser.cookies["csrftoken"]}
        cookies = browser.post("/guest", data=form).headers.get_list("set-cookie")
    session = next(cookie for cookie in cookies if cookie.startswith("sessionid="))
    assert "HttpOnly" in session and "SameSite=Lax" in session


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_static_files_are_served_whole(site: LiveSite, method: str) -> None:
    response = httpx2.request(method, f"{site.url}/static/admin/css/base.css", timeout=PATIENCE_S)
    assert response.status_code == 200 and response.headers["content-type"].startswith("text/css")
    assert int(response.headers["content-length"]) > 1000
    assert (len(response.content) > 1000) is (method == "GET")


@pytest.mark.parametrize(
    "path", ["/static/nothing.js", "/static/../manage.py", "/static/%2e%2e/manage.py", "/static/"]
)
def test_nothing_else_is_served(site: LiveSite, path: str) -> None:
    assert httpx2.get(f"{site.url}{path}", timeout=PATIENCE_S).status_code == 404


@pytest.mark.parametrize(
    "path", ["/api/nothing", "/api/conversations/not-a-uuid", "/v1/x", "/api/messages/1"]
)
@pytest.mark.parametrize("host", ["127.0.0.1", "evil.example"])
def test_the_json_doors_never_answer_with_a_page(site: LiveSite, path: str, host: str) -> None:
    response = httpx2.get(
        f"{site.url}{path}", headers={"Host": host, "Accept": "text/html"}, timeout=PATIENCE_S
    )
    assert response.status_code == (404 if host == "127.0.0.1" else 400)
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}
