"""Who gets what from every route: the routes come from the URL configuration, and one without a row fails.

Identities: nobody; another person; a guest; an expired key; a revoked key; a key of the owner's for each single scope;
staff who owns nothing here; the owner. The socket's frames are in test_socket_access.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import httpx2
import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from tests.livesite import LiveSite
from tests.patience import PATIENCE_S
from tests.site.conftest import Property, give, make_person, sign_in

IDENTITIES = ("nobody", "other", "expired", "scopeless", "staff", "owner")
# Where no status is named for them, these get what the identity beside them gets.
LIKE = {"guest": "other", "revoked": "expired"}
SCOPES = ("chat", "embeddings", "usage", "cache-admin")
# By the beginning of the route, the longest first: the scopes that open it; () is for signed-in people only.
OPENED_BY: dict[str, tuple[str, ...]] = {
    "v1/models": ("chat", "embeddings"),
    "v1/embeddings": ("embeddings",),
    "v1/": ("chat",),
    "api/keys": (),
    "api/me/": (),
    "api/exports/": (),
    "api/conversations/<uuidstr:conversation>/shares": (),
    "api/shares/": (),
    "api/usage": ("usage",),
    "api/quota": ("chat", "embeddings", "usage"),
    "api/cache/": ("cache-admin",),
    "api/": ("chat",),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One request and its status for each identity, in the order of IDENTITIES."""

    route: str  # as the URL configuration spells it
    method: str
    statuses: tuple[int, ...]
    path: str = ""  # where the route has parameters; {conversation} and the like are the owner's
    body: dict[str, Any] | None = None
    by_key: bool = False  # people come with their keys instead of their sessions
    form: dict[str, str] | None = None
    guest: int | None = None  # where a guest gets another status than another person

    def path_for(self, rows: Property) -> str:
        return (self.path or f"/{self.route}").format(**asdict(rows))

    def status_for(self, identity: str) -> int:
        if identity == "guest" and self.guest is not None:
            return self.guest
        return self.statuses[IDENTITIES.index(LIKE.get(identity, identity))]

    def opened_by(self) -> tuple[str, ...]:
        """The scopes with which a key of the owner does what the owner does; of open routes there is none to tell."""
        begun = max((start for start in OPENED_BY if self.route.startswith(start)), key=len, default="")
        return OPENED_BY[begun] if begun and self.status_for("scopeless") == 403 else ()


def everybody(status: int) -> tuple[int, ...]:
    return (status,) * len(IDENTITIES)


# A person's own thing: others and staff see what they would see if it did not exist.
def own(status: int) -> tuple[int, ...]:
    return (401, 404, 401, 403, 404, status)


# For every signed-in person, about that person only.
def mine(status: int) -> tuple[int, ...]:
    return (401, status, 401, 403, status, status)


# Doors for keys of anybody with the scope.
def keyed(status: int) -> tuple[int, ...]:
    return (401, status, 401, 403, status, status)


# For staff with the scope and the permission; a key of somebody who is no staff opens nothing, whatever its scopes.
def staffs(status: int) -> tuple[int, ...]:
    return (401, 403, 401, 403, status, 403)


TO_SIGN_IN = 302
CHAT = {"model": "scripted", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
CONVERSATION = "api/conversations/<uuidstr:conversation>"
GENERATION = "api/generations/<uuidstr:generation>"
MESSAGE = "api/messages/<uuidstr:message>"
TEMPLATE = "api/templates/<template>"
# The same message each time: whoever may ask finds it.
QUESTION = {"client_message_id": "0b6f4e58-5a0c-4a39-9b12-2f5c3d1d7a11", "text": "hi"}
AGAIN = {"client_message_id": QUESTION["client_message_id"]}

ROWS = (
    # Pages
    Row("", "GET", (302, 200, 302, 302, 200, 200)),
    Row("c/<uuid:conversation>", "GET", (302, 404, 302, 302, 404, 200), "/c/{conversation}"),
    Row("s/<secret>", "GET", everybody(404), "/s/unknown"),  # one that is known: below
    Row("keys", "GET", (302, 200, 302, 302, 200, 200)),
    Row("usage", "GET", (302, 200, 302, 302, 200, 200)),
    Row("usage/all", "GET", (302, 404, 302, 302, 200, 404)),
    Row("signin", "GET", (200, 302, 200, 200, 302, 302)),
    Row("signup", "GET", everybody(200)),
    Row("guest", "GET", everybody(405)),
    Row("signout", "GET", everybody(405)),
    Row("oidc/start", "GET", everybody(404)),  # until a provider is configured; with one in accounts/test_oidc.py
    Row("oidc/callback", "GET", everybody(404)),
    Row("oidc/leave", "GET", everybody(404)),
    # Health
    Row("health/live", "GET", everybody(200)),
    Row("health/ready", "GET", everybody(200)),
    Row("metrics", "GET", everybody(200)),  # from this host; others in test_health.py
    # The door for keys
    Row("v1/models", "GET", keyed(200), by_key=True),
    Row("v1/models/<path:name>", "GET", keyed(200), "/v1/models/scripted", by_key=True),
    Row("v1/chat/completions", "POST", keyed(200), body=CHAT, by_key=True),
    Row("v1/completions", "POST", keyed(400), body={}, by_key=True),
    Row("v1/responses", "POST", keyed(400), body={}, by_key=True),
    Row("v1/embeddings", "POST", keyed(400), body={}, by_key=True),
    Row("v1", "GET", everybody(404), by_key=True),
    Row("v1/", "GET", everybody(404), by_key=True),
    Row("v1/<path:rest>", "GET", everybody(404), "/v1/x/y", by_key=True),
    # The page's API
    Row("api/", "GET", everybody(404)),
    Row("api/docs", "GET", (302, 200, 302, 302, 200, 200)),
    Row("api/openapi.json", "GET", (302, 200, 302, 302, 200, 200)),
    Row("api/keys", "GET", mine(200)),
    Row("api/keys", "POST", mine(201), body={"name": "test"}, guest=400),
    Row("api/keys/<key_id>/rotate", "POST", own(201), "/api/keys/{key}/rotate", {}),
    Row("api/keys/<key_id>", "DELETE", own(204), "/api/keys/{key}"),
    Row("api/usage", "GET", mine(200)),
    Row("api/usage.csv", "GET", mine(200)),
    Row("api/usage/all", "GET", (401, 403, 401, 403, 200, 403)),
    Row("api/usage/all.csv", "GET", (401, 403, 401, 403, 200, 403)),
    Row("api/quota", "GET", mine(200)),
    Row("api/conversations", "GET", mine(200)),
    Row("api/conversations", "POST", mine(201), body={}),
    Row("api/conversations/bulk", "POST", mine(400), body={}),  # with foreign ids in chat/test_api_messages.py
    Row("api/conversations/export", "GET", mine(200)),
    Row("api/conversations/export", "POST", mine(400), body={}),
    Row("api/conversations/tags", "GET", mine(200)),
    Row("api/conversations/import", "POST", mine(400), body={}),
    Row(f"{CONVERSATION}/messages", "GET", own(200), "/api/conversations/{conversation}/messages"),
    Row(f"{CONVERSATION}/messages", "POST", own(202), "/api/conversations/{conversation}/messages", QUESTION),
    Row(f"{CONVERSATION}/export", "GET", own(200), "/api/conversations/{conversation}/export"),
    Row(f"{CONVERSATION}/shares", "GET", own(200), "/api/conversations/{conversation}/shares"),
    Row(f"{CONVERSATION}/shares", "POST", own(201), "/api/conversations/{conversation}/shares", {}),
    Row("api/shares/<uuidstr:share>", "DELETE", own(204), "/api/shares/{share}"),
    Row(f"{MESSAGE}/answers", "POST", own(400), "/api/messages/{message}/answers", AGAIN),  # it answers nothing
    Row(f"{MESSAGE}/continue", "POST", own(409), "/api/messages/{message}/continue", AGAIN),  # it is whole
    Row(f"{MESSAGE}/reword", "POST", own(400), "/api/messages/{message}/reword", QUESTION),  # it answers nothing
    Row(f"{MESSAGE}/feedback", "DELETE", own(204), "/api/messages/{message}/feedback"),
    Row("api/templates", "GET", mine(200)),
    Row("api/templates", "POST", mine(201), body={"title": "t", "body": "b"}),
    Row(TEMPLATE, "GET", own(200), "/api/templates/{template}"),
    Row(TEMPLATE, "PATCH", own(200), "/api/templates/{template}", {"title": "x"}),
    Row(f"{TEMPLATE}/use", "POST", own(200), "/api/templates/{template}/use", {}),
    Row(TEMPLATE, "DELETE", own(204), "/api/templates/{template}"),
    Row(CONVERSATION, "GET", own(200), "/api/conversations/{conversation}"),
    Row(CONVERSATION, "PATCH", own(200), "/api/conversations/{conversation}", {"title": "x"}),
    Row(MESSAGE, "GET", own(200), "/api/messages/{message}"),
    Row(f"{MESSAGE}/feedback", "PUT", own(204), "/api/messages/{message}/feedback", {"verdict": "up"}),
    Row(GENERATION, "GET", own(200), "/api/generations/{generation}"),
    Row(f"{GENERATION}/cancel", "POST", own(200), "/api/generations/{generation}/cancel"),
    Row(f"{GENERATION}/events", "GET", own(200), "/api/generations/{generation}/events"),
    Row(CONVERSATION, "DELETE", own(202), "/api/conversations/{conversation}"),
    # One's own data
    Row("api/me/export", "POST", mine(201), body={}),
    Row("api/me/erase", "POST", (401, 403, 401, 403, 403, 403), body={}),  # signed in, but without the password
    Row("api/exports/<secret>", "GET", mine(404), "/api/exports/unknown"),
    Row("api/receipts/<uuidstr:receipt>", "GET", everybody(404), "/api/receipts/{conversation}"),
    # The cache's administration; nothing of it stands in these requests
    Row("api/cache/rules", "GET", staffs(200)),
    Row("api/cache/rules", "POST", staffs(400), body={}),
    Row("api/cache/rules/order", "PUT", staffs(409), body={"ids": []}),
    Row("api/cache/rules/presets", "POST", staffs(200), body={}),
    Row("api/cache/rules/dry-run", "POST", staffs(200), body={}),
    Row("api/cache/rules/<rule_id>", "GET", staffs(404), "/api/cache/rules/999999"),
    Row("api/cache/rules/<rule_id>", "PATCH", staffs(404), "/api/cache/rules/999999", {}),
    Row("api/cache/rules/<rule_id>", "DELETE", staffs(404), "/api/cache/rules/999999"),
    Row("api/cache/rules/<rule_id>/statistics", "GET", staffs(404), "/api/cache/rules/999999/statistics"),
    Row("api/cache/entries", "GET", staffs(200)),
    Row("api/cache/entries/act", "POST", staffs(200), body={"act": "pin", "ids": [999_999]}),
    Row("api/cache/entries/evict", "POST", staffs(200), body={"owner": "nobody"}),
    Row("api/cache/entries/<entry_id>", "GET", staffs(404), "/api/cache/entries/999999"),
    Row("api/cache/entries/<entry_id>", "PATCH", staffs(404), "/api/cache/entries/999999", {"answer": "x"}),
    Row("api/cache/test", "POST", staffs(200), body={"text": "When do you open?"}),
    Row("api/cache/cases", "GET", staffs(200)),
    Row("api/cache/cases", "POST", staffs(400), body={}),
    Row("api/cache/cases/run", "POST", staffs(202), body={"ids": []}),
    Row("api/cache/cases/<case_id>", "GET", staffs(404), "/api/cache/cases/999999"),
    Row("api/cache/cases/<case_id>", "PATCH", staffs(404), "/api/cache/cases/999999", {}),
    Row("api/cache/cases/<case_id>", "DELETE", staffs(404), "/api/cache/cases/999999"),
    Row("api/cache/comparisons", "POST", staffs(404), body={"text": "When do you open?", "entry": 999_999}),
    Row("api/cache/comparisons/<comparison_id>", "GET", staffs(404), "/api/cache/comparisons/999999"),
    Row("api/cache/imports", "GET", staffs(200)),
    Row("api/cache/imports", "POST", staffs(400)),
    Row("api/cache/imports/<import_id>", "GET", staffs(404), "/api/cache/imports/999999"),
)  # fmt: skip

# Django's admin decides by one rule for all its routes: staff enters, everybody else is sent to its sign-in.
ADMIN = "admin/"
ADMIN_OPEN = {"admin/login/"}


def routes(
    patterns: list[URLPattern | URLResolver] | None = None, prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    """Every route of the site with its view."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, route)
        else:
            yield route, pattern.callback


def operations() -> set[tuple[str, str]]:
    """(route, method) of every operation; GET stands for views that do not say which methods they take."""
    found = set()
    for route, view in routes():
        if route.startswith(ADMIN):
            continue
        # django-ninja's view is a closure over the object that knows its operations.
        around = inspect.getclosurevars(view).nonlocals if inspect.isfunction(view) else {}
        path_view = getattr(around.get("self"), "operations", ())
        methods = {method for operation in path_view for method in operation.methods}
        found |= {(route, method) for method in methods or {""}}
    return found


def test_every_route_has_its_row() -> None:
    by_operation = {(row.route, row.method) for row in ROWS}
    by_route = {row.route for row in ROWS}
    missing = {
        (route, method)
        for route, method in operations()
        if (route, method) not in by_operation and not (method == "" and route in by_route)
    }
    assert not missing, f"routes without a row in the access matrix: {sorted(missing)}"
    assert by_route <= {route for route, _ in operations()}, "rows for routes that are gone"


@dataclass(slots=True)
class People:
    """A client for each identity."""

    sessions: dict[str, httpx2.Client] = field(default_factory=dict)
    keys: dict[str, httpx2.Client] = field(default_factory=dict)

    def client(self, identity: str, row: Row) -> httpx2.Client:
        if identity not in self.sessions:
            return self.keys[identity]
        return (self.keys if row.by_key else self.sessions).get(identity, self.sessions["nobody"])


@pytest.fixture(scope="module")
def people(site: LiveSite) -> Iterator[People]:
    made = People()
    anonymous = httpx2.Client(base_url=site.url, timeout=PATIENCE_S)
    made.sessions["nobody"] = made.keys["nobody"] = anonymous
    for identity in ("other", "staff", "owner"):
        make_person(site, identity, is_staff=identity == "staff", is_superuser=identity == "staff")
        made.sessions[identity] = sign_in(site, identity)
        made.keys[identity] = _with_key(site, site.key(identity))
    made.keys["scopeless"] = _with_key(site, site.key("owner", "cache-admin"))
    for scope in SCOPES:
        made.keys[scope] = _with_key(site, site.key("owner", scope))
    made.sessions["guest"] = _guest(site)
    revoked, expired = site.key("owner"), site.key("owner")
    site.sql("UPDATE accounts_apikey SET revoked_at = now() WHERE prefix = %s", revoked[:13])
    made.keys["revoked"] = _with_key(site, revoked)
    site.sql(
        "UPDATE accounts_apikey SET expires_at = now() - interval '1 day' WHERE prefix = %s", expired[:13]
    )
    made.keys["expired"] = _with_key(site, expired)
    yield made
    for client in [*made.sessions.values(), *made.keys.values()]:
        client.close()


def _guest(site: LiveSite) -> httpx2.Client:
    browser = httpx2.Client(base_url=site.url, timeout=PATIENCE_S)
    browser.get("/signin")
    entered = browser.post("/guest", data={"csrfmiddlewaretoken": browser.cookies["csrftoken"]})
    assert entered.status_code == 302
    browser.headers["X-CSRFToken"] = browser.cookies["csrftoken"]
    return browser


def _with_key(site: LiveSite, key: str) -> httpx2.Client:
    return httpx2.Client(base_url=site.url, headers={"Authorization": f"Bearer {key}"}, timeout=PATIENCE_S)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.route}")
def test_each_identity_gets_its_status(site: LiveSite, people: People, row: Row) -> None:
    rows = Property()
    give(site, "owner", rows)
    path = row.path_for(rows)
    identities = [name for name in (*LIKE, *IDENTITIES) if not (row.by_key and name == "guest")]
    got = {
        name: people.client(name, row).request(row.method, path, json=row.body).status_code
        for name in identities
    }
    assert got == {name: row.status_for(name) for name in identities}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.route}")
def test_each_scope_opens_its_routes_and_no_other(site: LiveSite, people: People, row: Row) -> None:
    got, expected = {}, {}
    for scope in SCOPES:
        rows = Property()
        is_open = scope in row.opened_by()
        if is_open:
            give(site, "owner", rows)
        path = row.path_for(rows)
        got[scope] = people.keys[scope].request(row.method, path, json=row.body).status_code
        expected[scope] = row.status_for("owner" if is_open else "scopeless")
    assert got == expected


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if row.statuses == own(row.statuses[-1])],
    ids=lambda row: f"{row.method} {row.route}",
)
def test_foreign_and_unknown_look_the_same(site: LiveSite, people: People, row: Row) -> None:
    rows, unknown = Property(), Property()
    give(site, "owner", rows)

    def body(of: Property) -> str:
        path = row.path_for(of)
        return people.sessions["other"].request(row.method, path, json=row.body).text

    assert body(rows) == body(unknown)


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.method not in ("GET",) and not row.by_key], ids=lambda row: row.route
)
def test_a_session_without_the_csrf_token_changes_nothing(site: LiveSite, people: People, row: Row) -> None:
    rows = Property()
    give(site, "owner", rows)
    path = row.path_for(rows)
    response = people.sessions["owner"].request(row.method, path, json=row.body, headers={"X-CSRFToken": ""})
    assert response.status_code == 403
    assert response.json()["error"]["code"] == "csrf_failed"


def test_only_doors_that_read_no_cookies_go_without_the_token() -> None:
    """CSRF: `/v1` takes keys only, and `/api` asks for the token itself wherever a session opens it (above)."""
    exempt = {route for route, view in routes() if getattr(view, "csrf_exempt", False)}
    assert {route for route in exempt if not route.startswith(("v1", "api/"))} == set()


def test_no_form_of_the_site_is_taken_without_the_token(people: People) -> None:
    """Every route outside the JSON doors, the admin's included, as staff for whom each would do something."""
    urls = {_example(route) for route, _ in routes() if not route.startswith(("v1", "api/"))}
    for url in sorted(url for url in urls if "<" not in url):
        response = people.sessions["staff"].post(url, data={"x": "1"}, headers={"X-CSRFToken": ""})
        assert response.status_code in (403, 405), (url, response.status_code)


def test_a_session_opens_no_door_for_keys(people: People) -> None:
    for row in ROWS:
        if row.by_key and row.statuses == keyed(row.statuses[-1]):
            response = people.sessions["owner"].request(
                row.method, row.path or f"/{row.route}", json=row.body
            )
            assert response.status_code == 401, row.route


def test_the_admin_is_for_staff_only(people: People) -> None:
    urls = [_example(route) for route, _ in routes() if route.startswith(ADMIN)]
    assert len(urls) > 30
    for url in urls:
        for identity in ("nobody", "other", "owner"):
            response = people.sessions[identity].get(url)
            is_sent_away = response.status_code == 302 and response.headers["location"].startswith(
                ("/admin/", "/signin")
            )
            is_open = url.lstrip("/") in ADMIN_OPEN and response.status_code == 200
            # Signing out takes POST only; it is the one view that asks for the method first.
            assert is_sent_away or is_open or response.status_code == 405, (
                url,
                identity,
                response.status_code,
            )


def test_a_shared_snapshot_is_seen_by_everybody_who_has_its_link(site: LiveSite, people: People) -> None:
    rows = Property()
    give(site, "owner", rows)
    got = {name: client.get(f"/s/{rows.share}").status_code for name, client in people.sessions.items()}
    assert set(got.values()) == {200}


def _example(route: str) -> str:
    """A URL that the route matches."""
    if "(?P<app_label>" in route:
        return "/admin/accounts/"
    if "(?P<url>" in route:
        return "/admin/nothing/here/"
    for parameter in ("<path:object_id>", "<path:content_type_id>", "<id>"):
        route = route.replace(parameter, "1")
    return f"/{route}"


@pytest.mark.parametrize(
    "page",
    [
        "",
        "engine/",
        "selftest/",
        "selftest/events",
        "accounts/user/",
        "accounts/apikey/",
        "accounts/tenant/",
        "accounts/usagerecord/",
    ],
)
def test_staff_enters_the_admin(people: People, page: str) -> None:
    assert people.sessions["staff"].get(f"/admin/{page}").status_code == 200
