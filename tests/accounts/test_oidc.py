"""Signing in by a provider: who comes in, as whom, and everything that must not be believed."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from django.conf import settings
from django.contrib.auth.models import Group
from django.test import Client

from chatsite.accounts.models import Identity, Tenant, User
from chatsite.accounts.oidc import people, provider, rules
from chatsite.checks import sign_in_by_provider
from tests.accounts.identity_provider import (
    CLIENT,
    SECRET,
    Provider,
    SigningKey,
    hs256_with_public_key,
    identity_provider,
    unsigned,
)

MakeUser = Callable[..., User]


@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    with identity_provider() as found:
        yield found


@pytest.fixture
def idp(running: Provider, db: None, configured: Callable[..., None]) -> Iterator[Provider]:
    """The site knows the provider, and the provider is honest."""
    fresh = Provider(running.issuer)
    running.__dict__.update(fresh.__dict__ | {"token": running.signed})
    configured(oidc_issuer=running.issuer, oidc_client_id=CLIENT, oidc_client_secret=SECRET, oidc_name="Acme")
    return running


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def change(**fields: Any) -> None:
        monkeypatch.setattr(settings, "CONFIG", replace(settings.CONFIG, **fields))
        provider.forget()

    return change


def set_out(client: Client, **query: str) -> str:
    response = client.get("/oidc/start", query)
    assert response.status_code == 302
    return str(response["location"])


def come_back(client: Client, answer: dict[str, str]) -> Any:
    return client.get(f"/oidc/callback?{urlencode(answer)}")


def sign_in(client: Client, idp: Provider, sub: str = "s-1", **claims: Any) -> Any:
    return come_back(client, idp.consent(set_out(client), sub, **claims))


def who(client: Client) -> User | None:
    pk = client.session.get("_auth_user_id")
    return User.objects.get(pk=pk) if pk else None


def test_off_until_it_is_configured(client: Client, db: None) -> None:
    for path in ("/oidc/start", "/oidc/callback", "/oidc/leave"):
        assert client.get(path).status_code == 404
    assert b"/oidc/" not in client.get("/signin").content


@pytest.mark.parametrize(("language", "words"), [("en", "Sign in with Acme"), ("zh-hans", "使用 Acme 登录")])
def test_the_sign_in_page_shows_the_way(client: Client, idp: Provider, language: str, words: str) -> None:
    page = client.get("/signin?next=/c/x", headers={"Accept-Language": language}).content.decode()
    assert words in page and 'href="/oidc/start?next=/c/x"' in page


def test_somebody_new_gets_an_account_and_comes_back_to_it(client: Client, idp: Provider) -> None:
    url = set_out(client, next="/c/x")
    asked = dict(parse_qsl(urlsplit(url).query))
    assert asked["redirect_uri"] == "http://testserver/oidc/callback" and len(asked["nonce"]) >= 20
    response = come_back(client, idp.consent(url, "s-1", preferred_username="ann"))
    assert (response.status_code, response["location"]) == (302, "/c/x")
    user = who(client)
    assert user is not None and user.username == "ann" and not user.has_usable_password()
    assert (
        not (user.is_staff or user.is_superuser or user.is_guest) and user.tenant == Tenant.objects.default()
    )
    assert (Identity.objects.get().issuer, Identity.objects.get().subject) == (idp.issuer, "s-1")
    again = Client()
    sign_in(again, idp, "s-1", preferred_username="renamed")
    assert who(again) == user and User.objects.count() == 1


def test_no_name_and_no_address_opens_somebody_elses_account(
    client: Client, idp: Provider, make_user: MakeUser
) -> None:
    """Account takeover: whoever may choose a name or an address at the provider is still nobody here."""
    root = make_user("root", email="root@example.org", is_staff=True, is_superuser=True)
    claims = {
        "preferred_username": "root",
        "email": "root@example.org",
        "email_verified": True,
        "name": "root",
    }
    sign_in(client, idp, "attacker", **claims)
    user = who(client)
    assert user is not None and user != root and user.username.startswith("root-")
    assert not (user.is_staff or user.is_superuser)


def test_of_two_who_come_at_once_under_one_name_both_get_an_account(
    client: Client, idp: Provider, make_user: MakeUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name was free when it was looked for."""
    ann, free_names = make_user("ann"), ["ann", "ann-2"]
    monkeypatch.setattr(people, "_free_name", lambda wished: free_names.pop(0))
    sign_in(client, idp, "s-2", preferred_username="ann")
    user = who(client)
    assert user is not None and user != ann and user.username == "ann-2"


def test_a_subject_of_another_issuer_is_somebody_else(
    client: Client, idp: Provider, make_user: MakeUser
) -> None:
    ann = make_user("ann")
    Identity.objects.create(user=ann, issuer="https://other.example", subject="s-1")
    sign_in(client, idp, "s-1")
    assert who(client) not in (None, ann)


@pytest.mark.parametrize("name", ["guest-abc", "", "<script>", "a" * 300, "名字", "\x00", "ann smith"])
def test_odd_names_still_get_an_account(client: Client, idp: Provider, name: str) -> None:
    sign_in(client, idp, "odd", preferred_username=name)
    user = who(client)
    assert user is not None
    assert not user.username.startswith("guest-") and User.objects.get().username.isprintable()


def test_new_people_can_be_refused_and_known_ones_still_come_in(
    client: Client, idp: Provider, configured: Callable[..., None], make_user: MakeUser
) -> None:
    configured(oidc_new_users=False)
    assert sign_in(client, idp, "new").status_code == 403 and who(client) is None
    assert not User.objects.exists()
    ann = make_user("ann")
    Identity.objects.create(user=ann, issuer=idp.issuer, subject="s-1")
    sign_in(client, idp, "s-1")
    assert who(client) == ann


def test_an_account_that_is_switched_off_stays_out(
    client: Client, idp: Provider, make_user: MakeUser
) -> None:
    ann = make_user("ann", is_active=False)
    Identity.objects.create(user=ann, issuer=idp.issuer, subject="s-1")
    assert sign_in(client, idp, "s-1").status_code == 403 and who(client) is None


def test_groups_business_line_and_staff_follow_the_claims(
    client: Client, idp: Provider, configured: Callable[..., None]
) -> None:
    configured(
        oidc_groups="eng=Engineers, ops=Operators",
        oidc_tenants="eng=rnd, all=rest",
        oidc_staff_group="rill-admins",
    )
    line = Tenant.objects.create(slug="rnd", name="R&D")
    kept = Group.objects.create(name="by hand")
    sign_in(client, idp, "s-1", groups=["all", "eng", "rill-admins", "Operators"])
    user = who(client)
    assert user is not None and user.is_staff and not user.is_superuser and user.tenant == line
    user.groups.add(kept)
    assert set(user.groups.values_list("name", flat=True)) == {"Engineers", "by hand"}
    for groups in (["ops"], "rill-admins", None, {"rill-admins": 1}):
        sign_in(client, idp, "s-1", groups=groups)
        user.refresh_from_db()
        assert not user.is_staff, "staff is taken away with the group, also when the claim is odd or missing"
    assert set(user.groups.values_list("name", flat=True)) == {"by hand"} and user.tenant == line


def test_without_a_mapped_group_nobody_becomes_staff(client: Client, idp: Provider) -> None:
    sign_in(client, idp, "s-1", groups=["", "admin", "staff"], is_staff=True, roles=["admin"])
    user = who(client)
    assert user is not None and not user.is_staff and not user.groups.exists()


def wrong(idp: Provider, **changes: Any) -> None:
    def changed(claims: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in (claims | changes).items() if value is not None}

    idp.claims = changed


FORGED: dict[str, Callable[[Provider], object]] = {
    "another audience": lambda idp: wrong(idp, aud="another-site"),
    "an audience beside ours, for another party": lambda idp: wrong(idp, aud=[CLIENT, "other"], azp="other"),
    "no audience": lambda idp: wrong(idp, aud=None),
    "another issuer": lambda idp: wrong(idp, iss="https://evil.example"),
    "no issuer": lambda idp: wrong(idp, iss=None),
    "another nonce": lambda idp: wrong(idp, nonce="replayed"),
    "no nonce": lambda idp: wrong(idp, nonce=None),
    "expired": lambda idp: wrong(idp, exp=int(time.time()) - 3600),
    "no end": lambda idp: wrong(idp, exp=None),
    "from the future": lambda idp: wrong(idp, iat=int(time.time()) + 3600),
    "no subject": lambda idp: wrong(idp, sub=None),
    "an empty subject": lambda idp: wrong(idp, sub=""),
    "a subject that is no text": lambda idp: wrong(idp, sub=5),
    "unsigned": lambda idp: setattr(idp, "token", unsigned),
    "signed with the public key": lambda idp: setattr(
        idp, "token", lambda claims: hs256_with_public_key(idp.key, claims)
    ),
    "signed by somebody else": lambda idp: setattr(idp, "token", SigningKey().sign),
    "signed by somebody else in our key's name": lambda idp: setattr(idp, "token", _in_the_name_of(idp.key.kid)),
    "a changed text": lambda idp: setattr(idp, "token", lambda claims: idp.key.sign(claims)[:-4] + "AAAA"),
    "no token": lambda idp: setattr(idp, "token", lambda claims: ""),
}  # fmt: skip


def _in_the_name_of(kid: str) -> Callable[[dict[str, Any]], str]:
    forger = SigningKey()
    forger.kid = kid
    return forger.sign


def test_no_forged_token_is_believed(idp: Provider, caplog: pytest.LogCaptureFixture) -> None:
    honest = idp.__dict__.copy()
    for what, forge in FORGED.items():
        forge(idp)
        client = Client()
        response = sign_in(client, idp)
        assert response.status_code == 400 and who(client) is None, what
        assert "Acme did not work" in response.content.decode()
        idp.claims, idp.token = honest["claims"], honest["token"]
    assert not User.objects.exists()
    assert not [secret for secret in idp.issued if secret and secret in caplog.text]
    assert sign_in(client, idp).status_code == 302, "an honest one is believed after all that"


def test_no_secret_of_the_way_is_logged_at_any_level(
    client: Client, idp: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        sign_in(client, idp)
        come_back(client, {"code": "canary-code", "state": "canary-state"})
    assert who(client) is not None and len(idp.issued) >= 6
    for name in ("authlib", "joserfc", "urllib3", "requests", "chatsite"):
        own = "\n".join(r.getMessage() for r in caplog.records if r.name.startswith(name))
        assert not [secret for secret in (*idp.issued, "canary-code") if secret in own], name


def test_what_comes_back_must_have_set_out_here_and_once(client: Client, idp: Provider) -> None:
    answer = idp.consent(set_out(client), "s-1")
    other = Client()
    assert come_back(other, answer).status_code == 400, "another browser's way back"
    url = set_out(other)
    assert come_back(other, answer).status_code == 400, "another browser's state (session fixation)"
    assert come_back(client, answer | {"state": "x"}).status_code == 400
    assert come_back(client, answer).status_code == 400, "one try for one departure"
    for broken in ({}, {"error": "access_denied", "state": answer["state"]}, {"code": answer["code"]}):
        set_out(client)
        assert come_back(client, broken).status_code == 400
    mixed = idp.consent(set_out(client), "s-1") | {"iss": "https://evil.example"}
    assert come_back(client, mixed).status_code == 400, "another issuer's answer (mix-up)"
    assert who(client) is None and who(other) is None and url
    # A browser that keeps its cookie is stopped by the provider, which takes a code once.
    url = set_out(client)
    kept, answer = client.cookies["oidc"].value, idp.consent(url, "s-1")
    assert come_back(client, answer).status_code == 302
    replaying = Client()
    replaying.cookies["oidc"] = kept
    assert come_back(replaying, answer).status_code == 400 and who(replaying) is None


def test_the_way_back_is_open_for_ten_minutes(
    client: Client, idp: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = idp.consent(set_out(client), "s-1")
    now = time.time()
    monkeypatch.setattr("django.core.signing.time.time", lambda: now + 601)
    assert come_back(client, answer).status_code == 400 and who(client) is None


def test_a_key_that_the_provider_changed_is_found(client: Client, idp: Provider) -> None:
    sign_in(client, idp)
    idp.rotate()
    again = Client()
    assert sign_in(again, idp).status_code == 302 and who(again) == who(client)
    assert idp.asked.count("/.well-known/openid-configuration") == 1, (
        "what is known is not asked for each time"
    )


def test_signing_in_begins_a_new_session(client: Client, idp: Provider) -> None:
    client.post("/signin", {"username": "x", "password": "y"})
    session = client.session
    session["planted"] = 1
    session.save()
    sign_in(client, idp)
    assert client.session.session_key != session.session_key


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_a_foreign_next_is_not_followed(client: Client, idp: Provider, target: str) -> None:
    answer = idp.consent(set_out(client, next=target), "s-1")
    assert come_back(client, answer)["location"] == "/"


def test_signing_out_offers_the_way_out_at_the_provider(client: Client, idp: Provider) -> None:
    sign_in(client, idp)
    left = client.post("/signout")
    assert who(client) is None and left["location"] == "/signin?left=provider"
    assert "Sign out of Acme, too" in client.get(left["location"]).content.decode()
    out = urlsplit(client.get("/oidc/leave")["location"])
    assert f"{out.scheme}://{out.netloc}{out.path}" == f"{idp.issuer}/logout"
    query = dict(parse_qsl(out.query))
    assert query["client_id"] == CLIENT and query["post_logout_redirect_uri"] == "http://testserver/signin"
    idp.metadata = lambda data: {**data, "end_session_endpoint": None}
    provider.forget()
    assert client.get("/oidc/leave")["location"] == "/signin"


BAD_METADATA: dict[str, dict[str, Any]] = {
    "another issuer": {"issuer": "https://evil.example"},
    "people sent on without https": {"authorization_endpoint": "http://login.example/authorize"},
    "tokens from elsewhere": {"token_endpoint": "https://evil.example/token"},
    "keys from this machine": {"jwks_uri": "http://127.0.0.1:1/jwks"},
    "keys from a file": {"jwks_uri": "file:///etc/passwd"},
    "no endpoint": {"token_endpoint": None},
    "only secrets shared": {"id_token_signing_alg_values_supported": ["HS256", "none"]},
}


def test_a_provider_that_speaks_of_other_hosts_is_not_followed(
    idp: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S12: fetched is what the operator named; the sockets that are opened prove it."""
    opened: list[str] = []
    connect = provider.OAuth2Session.request

    def recorded(self: Any, method: str, url: str, **options: Any) -> Any:
        opened.append(url)
        return connect(self, method, url, **options)

    monkeypatch.setattr(provider.OAuth2Session, "request", recorded)
    for what, change in BAD_METADATA.items():
        provider.forget()
        idp.metadata = lambda data, change=change: {**data, **change}  # type: ignore[misc]
        client = Client()
        begun = client.get("/oidc/start")
        if begun.status_code == 302:
            begun = come_back(client, idp.consent(begun["location"], "s-1"))
        assert begun.status_code == 400 and who(client) is None, what
    idp.metadata, idp.redirect_to = (lambda data: data), "http://127.0.0.1:1/elsewhere"
    provider.forget()
    assert sign_in(client, idp).status_code == 400, "a redirect is an answer like any other: a wrong one"
    assert opened and {urlsplit(url).netloc for url in opened} == {urlsplit(idp.issuer).netloc}


def test_a_provider_that_is_away_is_said(
    client: Client, idp: Provider, configured: Callable[..., None]
) -> None:
    configured(oidc_issuer="http://127.0.0.1:1")
    response = client.get("/oidc/start")
    assert response.status_code == 400 and "Acme did not work" in response.content.decode()


@pytest.mark.parametrize(
    ("url", "is_safe"),
    [
        ("https://login.example", True),
        ("http://login.example", False),
        ("http://127.0.0.1:8080", True),
        ("http://127.0.0.1@evil.example", False),
        ("http://localhost.evil.example", False),
        ("file:///etc/passwd", False),
        ("", False),
    ],
)
def test_without_https_only_this_machine_is_asked(url: str, is_safe: bool) -> None:
    assert rules.is_safe(rules.origin_of(url)) is is_safe


@pytest.mark.parametrize("mapping", ["a", "a=", "=b", "a=b,c"])
def test_a_mapping_that_is_none_is_refused(mapping: str) -> None:
    with pytest.raises(ValueError, match="theirs=ours"):
        rules.pairs(mapping)
    assert rules.pairs("a = b, c=d=e,") == [("a", "b"), ("c", "d=e")]


@pytest.mark.parametrize(
    ("fields", "numbers"),
    [
        ({}, set()),
        ({"oidc_issuer": "https://login.example", "oidc_client_id": "x", "oidc_groups": "a=b"}, set()),
        ({"oidc_issuer": "http://login.example", "oidc_client_id": "x"}, {"chatsite.E011"}),
        ({"oidc_issuer": "https://login.example"}, {"chatsite.E012"}),
        (
            {"oidc_issuer": "https://login.example", "oidc_client_id": "x", "oidc_tenants": "a"},
            {"chatsite.E013"},
        ),
    ],
)
def test_settings_by_which_nobody_could_sign_in_are_refused_at_the_start(
    configured: Callable[..., None], fields: dict[str, str], numbers: set[str]
) -> None:
    configured(**fields)
    assert {error.id for error in sign_in_by_provider()} == numbers


def test_staff_join_an_account_to_its_identity(client: Client, idp: Provider, make_user: MakeUser) -> None:
    ann = make_user("ann")
    staff = Client()
    staff.force_login(User.objects.create_superuser("root", password="x"))
    fields = {"user": ann.pk, "issuer": idp.issuer, "subject": "s-1"}
    assert staff.post("/admin/accounts/identity/add/", fields).status_code == 302
    sign_in(client, idp, "s-1")
    assert who(client) == ann


def test_no_other_module_of_the_site_can_fetch_anything() -> None:
    """S12: one module has a client for HTTP; it fetches what operators name, and never what users do."""
    client = re.compile(
        r"^\s*(?:from|import) (?:requests|httpx2?|urllib3|urllib\.request|aiohttp|http\.client|authlib)\b",
        re.M,
    )
    root = Path(settings.BASE_DIR)
    found = {
        path.relative_to(root).as_posix()
        for folder in ("chatsite", "semcache")
        for path in (root / folder).rglob("*.py")
        if client.search(path.read_text())
    }
    assert found == {"chatsite/accounts/oidc/provider.py"}
