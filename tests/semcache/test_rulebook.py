"""Rules in force: read at most every two seconds, bad ones skipped with one line in the log, presets present."""

from __future__ import annotations

import importlib
import logging

import pytest
from django.apps import apps

from semcache.models import CacheRule
from semcache.rules.policy import choose
from semcache.rules.presets import PRESETS
from semcache.rules.rulebook import RuleBook
from tests.semcache import factories

pytestmark = pytest.mark.django_db


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_change_acts_after_two_seconds_or_at_once_when_told(django_assert_num_queries):
    CacheRule.objects.all().delete()
    clock = Clock()
    book = RuleBook(clock)
    factories.rule(name="one")
    assert [rule.name for rule in book.fresh()] == ["one"]
    factories.rule(name="two")
    clock.now = 2.0
    with django_assert_num_queries(0):
        assert len(book.fresh()) == 1
    clock.now = 2.1
    assert len(book.fresh()) == 2
    factories.rule(name="three")
    book.forget()
    assert len(book.fresh()) == 3


def test_disabled_rules_never_match():
    CacheRule.objects.all().delete()
    factories.rule(is_enabled=False)
    assert RuleBook().fresh() == ()


def test_a_bad_pattern_in_the_table_is_skipped_with_one_log_line(caplog):
    CacheRule.objects.all().delete()
    factories.rule(name="broken one", pattern="([a-")
    factories.rule(name="good")
    clock = Clock()
    book = RuleBook(clock)
    with caplog.at_level(logging.WARNING, "semcache"):
        for second in (0, 3, 6):
            clock.now = second
            assert [rule.name for rule in book.fresh()] == ["good"]
    assert len(caplog.records) == 1
    assert "broken one" in caplog.text


def test_the_migration_adds_the_presets_and_leaves_an_operators_rule_alone():
    CacheRule.objects.all().delete()
    factories.rule(name="Weather", ttl_s=5)
    migration = importlib.import_module("semcache.migrations.0003_presets")
    migration.add_presets(apps, None)
    migration.add_presets(apps, None)
    assert set(CacheRule.objects.values_list("name", flat=True)) == {preset.name for preset in PRESETS}
    assert CacheRule.objects.get(name="Weather").ttl_s == 5


@pytest.mark.parametrize(
    ("text", "name", "mode", "sharing", "ttl_s"),
    [
        ("What's the weather in Oslo?", "Weather", "semantic", "public", 600),
        ("今天上海天气怎么样", "Weather", "semantic", "public", 600),
        ("Tell me about your company", "Company introduction", "semantic", "public", 86_400),
        ("请做一下公司介绍", "Company introduction", "semantic", "public", 86_400),
        ("Where is my order?", "Payment and orders", "exact", "private", 86_400),
        ("怎么付款", "Payment and orders", "exact", "private", 86_400),
        ("payment for the weather app", "Payment and orders", "exact", "private", 86_400),
        ("What is a black hole?", "Everything else", "semantic", "private", 86_400),
    ],
)
def test_the_presets_sort_questions_in_both_languages(text, name, mode, sharing, ttl_s):
    CacheRule.objects.all().delete()
    importlib.import_module("semcache.migrations.0003_presets").add_presets(apps, None)
    rule = choose(RuleBook().fresh(), text, "default", "small")
    assert rule is not None
    assert (rule.name, rule.mode, rule.sharing, rule.ttl_s) == (name, mode, sharing, ttl_s)


def test_rules_that_were_read_lately_are_known_without_the_database(django_assert_num_queries):
    clock = Clock()
    book = RuleBook(clock)
    assert book.known() is None
    rules = book.fresh()
    clock.now = 2.0
    with django_assert_num_queries(0):
        assert book.known() == rules
    clock.now = 2.1
    assert book.known() is None
    assert book.fresh() == book.known()
    book.forget()
    assert book.known() is None
