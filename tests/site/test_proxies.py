"""Behind a proxy with TLS, by the production settings of the docs; and what forged headers can't do without one.

The proxy is played by its headers: it sets X-Forwarded-Proto and -For and keeps Host, or rewrites it and sets -Host.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx2
import pytest

from tests.chaos.wire import Refused, Wire
from tests.livesite import LiveSite, live_site
from tests.patience import PATIENCE_S
from tests.site.conftest import PASSWORD, make_person
from tests.site.test_deploy import production

HOST = "chat.example.org"
BY_PROXY = {"Host": HOST, "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"}
REWRITTEN = {"Host": "127.0.0.1", "X-Forwarded-Host": HOST, "X-Forwarded-Proto": "https"}
CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def proxied() -> Iterator[LiveSite]:
    given = {name: value for name, value in production().items() if name.startswith("CHAT_")}
    with live_site("proxied", **given) as running:
        make_person(running, "root", is_staff=True, is_superuser=True)
        yield running


def browser(site: LiveSite, headers: dict[str, str]) -> httpx2.Client:
    """Cookies are kept and sent by hand: the client takes the wire for plain HTTP, as the site must not."""
    return httpx2.Client(base_url=site.url, headers=headers, timeout=PATIENCE_S)


def cookies_of(response: httpx2.Response) -> dict[str, str]:
    pairs = [cookie.split(";")[0].partition("=") for cookie in response.headers.get_list("set-cookie")]
    return {name: value for name, _, value in pairs}


def sign_in(client: httpx2.Client, page: str, origin: str | None = f"https://{HOST}") -> httpx2.Response:
    token = cookies_of(client.get(page))["__Host-csrftoken"]
    form = {"username": "root", "password": PASSWORD, "csrfmiddlewaretoken": token}
    headers = {"Cookie": f"__Host-csrftoken={token}", "Referer": f"https://{HOST}{page}"}
    return client.post(page, data=form, headers=headers | ({"Origin": origin} if origin else {}))


async def socket_status(site: LiveSite, headers: dict[str, str]) -> int:
    try:
        wire = await Wire.open(int(site.url.rpartition(":")[2]), "/ws/chat", headers)
    except Refused as refused:
        return refused.status
    wire.vanish()
    return 101


@pytest.mark.parametrize("headers", [BY_PROXY, REWRITTEN], ids=["host kept", "host rewritten"])
def test_sign_in_admin_and_socket_work_through_the_proxy(proxied: LiveSite, headers: dict[str, str]) -> None:
    """AU-03."""
    with browser(proxied, headers) as client:
        for page in ("/signin", "/admin/login/"):
            entered = sign_in(client, page)
            assert entered.status_code == 302, entered.text
        session = cookies_of(entered)["__Host-sessionid"]
        (raw,) = [c for c in entered.headers.get_list("set-cookie") if c.startswith("__Host-sessionid")]
        assert {"Secure", "HttpOnly", "Path=/", "SameSite=Lax"} <= {part.strip() for part in raw.split(";")}
        assert "Domain" not in raw
        cookie = {"Cookie": f"__Host-sessionid={session}"}
        assert client.get("/admin/", headers=cookie).status_code == 200
        assert client.get("/api/keys", headers=cookie).status_code == 200
        refused = client.post("/api/keys", json={"name": "x"}, headers=cookie)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "csrf_failed")
        assert (
            client.get("/").headers["strict-transport-security"]
            == "max-age=31536000; includeSubDomains; preload"
        )
    for origin, status in ((f"https://{HOST}", 101), (f"http://{HOST}", 403), ("https://evil.example", 403)):
        assert asyncio.run(socket_status(proxied, cookie | {"Origin": origin})) == status


def test_forms_of_other_pages_are_refused(proxied: LiveSite) -> None:
    with browser(proxied, BY_PROXY) as client:
        for origin in (f"http://{HOST}", "https://evil.example", "null", f"https://{HOST}.evil.example"):
            assert sign_in(client, "/signin", origin).status_code == 403, origin


def test_who_does_not_come_by_https_is_sent_there(proxied: LiveSite) -> None:
    with browser(proxied, {"Host": HOST}) as client:
        sent = client.get("/signin?next=/c/x")
        assert (sent.status_code, sent.headers["location"]) == (301, f"https://{HOST}/signin?next=/c/x")
        assert client.get("/health/live").status_code == 200
    with browser(proxied, {"Host": HOST, "X-Forwarded-Proto": "http"}) as client:
        assert client.get("/signin").status_code == 301


@pytest.mark.parametrize(
    "forged",
    [
        [("X-Forwarded-Proto", "https"), ("X-Forwarded-Proto", "http")],
        [("X-Forwarded-Proto", "https, http")],
        [("X_Forwarded_Proto", "https")],
        [("X-Forwarded-Proto", "http"), ("X_Forwarded_Proto", "https")],
        [("X_FORWARDED-Proto", "https")],
        [("Forwarded", "proto=https")],
        [("X-Forwarded-Ssl", "on")],
        [("X-Url-Scheme", "https")],
    ],
)
def test_a_client_cannot_pass_for_https(proxied: LiveSite, forged: list[tuple[str, str]]) -> None:
    """S28: what the client wrote stands before the proxy's own word, and other spellings are no header."""
    response = httpx2.get(f"{proxied.url}/signin", headers=[("Host", HOST), *forged], timeout=PATIENCE_S)
    assert response.status_code == 301


def test_a_forwarded_host_that_is_not_ours_is_refused(proxied: LiveSite) -> None:
    for host in ("evil.example", f"{HOST}, evil.example", f"{HOST}@evil.example"):
        headers = REWRITTEN | {"X-Forwarded-Host": host}
        assert httpx2.get(f"{proxied.url}/signin", headers=headers, timeout=PATIENCE_S).status_code == 400, (
            host
        )
    doubled = [*BY_PROXY.items(), ("X-Forwarded-Host", "evil.example"), ("X-Forwarded-Host", HOST)]
    assert httpx2.get(f"{proxied.url}/signin", headers=doubled, timeout=PATIENCE_S).status_code == 200


def test_keys_need_no_csrf_token_and_a_foreign_preflight_allows_nothing(
    proxied: LiveSite, site: LiveSite
) -> None:
    """AU-03."""
    for one, headers in ((proxied, BY_PROXY), (site, {})):
        bearer = headers | {"Authorization": f"Bearer {one.key('integration')}"}
        assert httpx2.post(f"{one.url}{CHAT}", json={}, headers=bearer, timeout=PATIENCE_S).status_code == 400
        asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        for path in (CHAT, "/api/keys", "/signin"):
            answer = httpx2.options(f"{one.url}{path}", headers=headers | asked, timeout=PATIENCE_S)
            assert not [name for name in answer.headers if name.startswith("access-control-allow")]


FORGED = {
    "Host": "127.0.0.1",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-For": "198.51.100.1",
    "X_Forwarded_For": "198.51.100.2",
    "X-Real-IP": "198.51.100.3",
}


def test_without_a_trusted_proxy_forged_headers_change_nothing(site: LiveSite) -> None:
    """AU-03, S28: neither scheme nor host nor the address that the brake counts."""
    site.sql("DELETE FROM accounts_signinfailures")
    with httpx2.Client(base_url=site.url, headers=FORGED, timeout=PATIENCE_S) as client:
        page = client.get("/signin")
        assert page.status_code == 200 and "strict-transport-security" not in page.headers
        form = {"username": "nobody", "password": "x", "csrfmiddlewaretoken": client.cookies["csrftoken"]}
        for number in range(3):
            client.post("/signin", data=form, headers={"X-Forwarded-For": f"198.51.100.{number}"})
    rows = site.sql("SELECT DISTINCT address FROM accounts_signinfailures WHERE address <> '*'")
    assert rows == [("127.0.0.1",)]
    site.sql("DELETE FROM accounts_signinfailures")


def test_the_brake_counts_by_what_the_trusted_proxy_says(proxied: LiveSite) -> None:
    proxied.sql("DELETE FROM accounts_signinfailures")
    with browser(proxied, BY_PROXY) as client:
        token = cookies_of(client.get("/signin"))["__Host-csrftoken"]
        form = {"username": "nobody", "password": "x", "csrfmiddlewaretoken": token}
        headers = {"Cookie": f"__Host-csrftoken={token}", "Origin": f"https://{HOST}"}
        for forged in ("198.51.100.1", "198.51.100.2, 198.51.100.3"):
            client.post("/signin", data=form, headers=headers | {"X-Forwarded-For": f"{forged}, 203.0.113.7"})
    assert proxied.sql("SELECT DISTINCT address FROM accounts_signinfailures WHERE address <> '*'") == [
        ("203.0.113.7",)
    ]
