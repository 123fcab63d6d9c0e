"""The self-test's page and stream are for staff, and the stream leaves the server as it is made."""

from __future__ import annotations

import time
from contextlib import closing

import httpx2
from django.contrib.auth import get_user_model
from django.utils.translation import override

from chatsite.selftest import EVERY_S, NUM_EVENTS, _texts
from tests.livesite import LiveSite
from tests.site.conftest import make_person, sign_in

EVENTS = "/admin/selftest/events"


def test_staff_get_the_page_with_its_words(client, db) -> None:
    client.force_login(get_user_model().objects.create_superuser("root"))
    page = client.get("/admin/selftest/").content.decode()
    assert "Event streams flow" in page
    assert "selftest/page" in page


def test_every_word_of_the_page_is_translated() -> None:
    with override("en"):  # whatever a test before has asked for
        english = _texts()
    with override("zh-hans"):
        chinese = _texts()
    assert [key for key in english if english[key] == chinese[key]] == []


def test_strangers_are_sent_away(site: LiveSite) -> None:
    assert httpx2.get(site.url + EVENTS).status_code == 302


def test_ordinary_people_are_sent_away(site: LiveSite) -> None:
    make_person(site, "selftest-ordinary")
    with closing(sign_in(site, "selftest-ordinary")) as client:
        assert client.get(EVENTS).status_code == 302


def test_events_leave_one_by_one_also_for_a_browser_that_takes_gzip(site: LiveSite) -> None:
    make_person(site, "selftest-staff", is_staff=True)
    with closing(sign_in(site, "selftest-staff")) as client:
        began = time.monotonic()
        with client.stream("GET", EVENTS, headers={"Accept-Encoding": "gzip, br"}) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            assert stream.headers["x-accel-buffering"] == "no"
            times = [time.monotonic() - began for line in stream.iter_lines() if line.startswith("data: ")]
    assert len(times) == NUM_EVENTS
    assert times[-1] - times[0] >= EVERY_S * (NUM_EVENTS - 2)
