"""Files under the running version are answered from memory, as the whole site answers them; nothing else is."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from chatsite.kept_files import KeptFiles, Message, Scope, key_of
from chatsite.static_files import FOR_EVER, version
from tests.livesite import LiveSite
from tests.patience import PATIENCE_S

PATH = "/static/~0123456789ab/a.js"


class Site:
    """Answers in two pieces what it is told to, and counts."""

    def __init__(self, status: int = 200, **headers: str) -> None:
        self.num_asked = 0
        self._status = status
        self._headers = {"Cache-Control": FOR_EVER, "X-Request-Id": "req_first"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        self.num_asked += 1
        headers = [(name.encode(), value.encode()) for name, value in self._headers.items()]
        await send({"type": "http.response.start", "status": self._status, "headers": headers})
        await send({"type": "http.response.body", "body": b"one ", "more_body": True})
        await send({"type": "http.response.body", "body": b"two"})


def scope_of(
    path: str = PATH, method: str = "GET", scheme: str = "http", root_path: str = "", **headers: str
) -> Scope:
    sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "scheme": scheme,
        "root_path": root_path, "query_string": b"", "headers": sent, "http_version": "1.1",
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
    }  # fmt: skip


async def answer(application: Any, scope: Scope) -> tuple[int, dict[str, str], bytes]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    whole = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Message:
        for message in whole:
            return message
        await asyncio.Event().wait()
        raise AssertionError

    await application(scope, receive, send)
    headers = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    assert not sent[-1].get("more_body", False)
    return sent[0]["status"], headers, b"".join(message.get("body", b"") for message in sent[1:])


async def test_what_is_valid_for_ever_is_asked_for_once_and_answered_alike() -> None:
    site = Site(Content_Security_Policy="default-src 'none'", ETag='"1"')
    files = KeptFiles(site)
    first, second, third = [await answer(files, scope_of()) for _ in range(3)]
    assert site.num_asked == 1
    ids = [headers.pop("x-request-id") for _, headers, _ in (first, second, third)]
    assert first == second == third
    assert first[2] == b"one two"
    assert len(set(ids)) == 3 and all(name.startswith("req_") for name in ids)


@pytest.mark.parametrize(
    "site",
    [
        Site(Cache_Control="max-age=60, public"),
        Site(Cache_Control="no-store"),
        Site(status=404),
        Site(status=206),
        Site(Vary="Accept-Encoding"),
    ],
)
async def test_no_other_answer_is_kept(site: Site) -> None:
    files = KeptFiles(site)
    for _ in range(2):
        await answer(files, scope_of())
    assert site.num_asked == 2


@pytest.mark.parametrize(
    "other",
    [
        scope_of(method="HEAD"),
        scope_of(method="POST"),
        scope_of(path=PATH + "x"),
        scope_of(path="/c/1"),
        scope_of(scheme="https"),
        scope_of(root_path="/static"),
        scope_of(range="bytes=0-1"),
        scope_of(if_none_match='"1"'),
        scope_of(if_modified_since="Tue, 01 Dec 2026 08:57:35 GMT"),
        scope_of(x_forwarded_proto="https"),
        scope_of(x_forwarded_proto="http"),
        scope_of(x_forwarded_proto="http, https"),
    ],
)
async def test_a_request_of_another_kind_is_the_sites_own(other: Scope) -> None:
    site = Site()
    files = KeptFiles(site)
    await answer(files, scope_of())
    await answer(files, other)
    assert site.num_asked == 2


async def test_an_answer_that_broke_off_is_not_kept() -> None:
    class Broken(Site):
        async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
            self.num_asked += 1
            headers = [(b"cache-control", FOR_EVER.encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"one ", "more_body": True})

    site = Broken()
    files = KeptFiles(site)
    for _ in range(2):
        with pytest.raises(AssertionError):
            await answer(files, scope_of())
    assert site.num_asked == 2


def test_what_clients_send_makes_no_more_than_six_answers_of_a_file() -> None:
    sent = [{}, *({"x_forwarded_proto": value} for value in ("http", "https", "ftp", "HTTPS", "a, https"))]
    keys = {
        key_of(scope_of(scheme=scheme, cookie="a=1", accept_encoding=f"gzip;q=0.{number}", **headers))
        for scheme in ("http", "https")
        for number in range(5)
        for headers in sent
    }
    assert len(keys - {None}) == 6


async def test_the_sites_files_come_past_django_from_the_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from chatsite.asgi import application
    from chatsite.static_files import StaticFiles

    scope = scope_of(f"/static/~{version()}/chat/main.js", host="127.0.0.1")
    first = await answer(application, scope)
    monkeypatch.delattr(StaticFiles, "_read")
    second = await answer(application, scope)
    assert first[0] == 200 and first[2] == second[2]
    assert first[1].pop("x-request-id") != second[1].pop("x-request-id")
    assert first[1] == second[1] and "content-security-policy" in second[1]


def test_every_answer_of_a_file_has_the_same_headers(site: LiveSite) -> None:
    with httpx2.Client(base_url=site.url, timeout=PATIENCE_S) as browser:
        answers = [browser.get(f"/static/~{version()}/chat/main.js") for _ in range(3)]
    changing = {"date", "x-request-id"}
    kept = [{name: value for name, value in a.headers.items() if name not in changing} for a in answers]
    assert kept[0] == kept[1] == kept[2]
    assert len({a.headers["x-request-id"] for a in answers}) == 3
    assert {a.text for a in answers} == {answers[0].text} and answers[0].text
