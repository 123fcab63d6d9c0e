"""Which rule decides about a question: matching and precedence.

Pure: rules are plain values, patterns are RE2 (linear time, so no pattern can hang a request). Knows nothing of
the database that keeps rules nor of what happens under a rule, nor how near a question is to an example: it is told.

Precedence, in this order: lowest priority number; at equal priority `off` and `exact` before the others; the more
specific matcher; the lower id. The same rules give the same winner whatever order they arrive in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import takewhile
from typing import Any

import re2

MAX_PATTERN_BYTES_OF_MEMORY = 1 << 20
# A rule that needs more is a topic for keywords; so many are embedded within a look-up's time.
MAX_EXAMPLES = 20


class Mode(StrEnum):
    OFF = "off"
    EXACT = "exact"
    SEMANTIC = "semantic"
    SHADOW = "shadow"


class Tightened(StrEnum):
    """What a rule does of its own accord once too many of its answers were wrong."""

    NO = ""
    VERIFY = "verify"
    EXACT = "exact"


class BadPattern(ValueError):
    """The pattern is not RE2, or too large, in RE2's own words; or the examples are too many or say nothing."""

    code = "bad_pattern"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the rule table, as a plain value. `search` is set by `compiled`.

    `check_share` is the share of answers to check now, which is more while the rule is watched closely.
    """

    id: int
    name: str
    priority: int = 100
    pattern: str = ""
    keywords: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    example_similarity: float = 0.9
    tenant: str = ""
    model: str = ""
    mode: str = Mode.SEMANTIC
    sharing: str = "private"
    ttl_s: int = 86_400
    accept_similarity: float = 0.97
    verify_similarity: float = 0.90
    max_temperature: float = 1.0
    is_strict: bool = False
    stale_s: int = 0
    check_share: float = 0.0
    tightened: str = ""
    search: Callable[[str], Any] | None = field(default=None, compare=False, repr=False)

    def concerns(self, tenant: str, model: str) -> bool:
        """Tenant and model must agree where the rule names them."""
        return self.tenant in ("", tenant) and self.model in ("", model)

    def matches(self, text: str, tenant: str, model: str, like: Collection[int] = ()) -> bool:
        """The rule concerns the question, and the pattern or any keyword is found in it, or an example is near.

        `like` are the ids of the rules of which an example is near. A rule without any of the three matches everything.
        """
        if not self.concerns(tenant, model):
            return False
        if self.id in like:
            return True
        return bool(self.search(text)) if self.search is not None else not self.examples

    @property
    def is_exact_by_itself(self) -> bool:
        return self.mode == Mode.SEMANTIC and self.tightened == Tightened.EXACT

    @property
    def looks_at_meaning(self) -> bool:
        return self.mode in (Mode.SEMANTIC, Mode.SHADOW) and not self.is_exact_by_itself

    @property
    def precedence(self) -> tuple[int, bool, tuple[int, int], int]:
        """Sorts the winner first."""
        is_lenient = self.mode not in (Mode.OFF, Mode.EXACT)
        num_conditions = sum(map(bool, (self.pattern, self.keywords, self.examples, self.tenant, self.model)))
        length = max((len(said) for said in (self.pattern, *self.keywords)), default=0)
        return self.priority, is_lenient, (-num_conditions, -length), self.id


def compiled(rules: Iterable[Rule], on_bad: Callable[[Rule, BadPattern], None]) -> tuple[Rule, ...]:
    """The rules that can match, in order of precedence; one whose pattern is bad is left out and reported."""
    usable = []
    for rule in rules:
        try:
            usable.append(_with_search(rule))
        except BadPattern as problem:
            on_bad(rule, problem)
    return tuple(sorted(usable, key=lambda rule: rule.precedence))


def choose(
    rules: Sequence[Rule], text: str, tenant: str, model: str, like: Collection[int] = ()
) -> Rule | None:
    """The first of `rules` (from `compiled`) that matches, or None."""
    return next((rule for rule in rules if rule.matches(text, tenant, model, like)), None)


def by_example(rules: Sequence[Rule], text: str, tenant: str, model: str) -> tuple[Rule, ...]:
    """Those of `rules` that win if the question is near one of their examples; () where words decide."""
    earlier = takewhile(lambda rule: not rule.matches(text, tenant, model), rules)
    return tuple(rule for rule in earlier if rule.examples and rule.concerns(tenant, model))


def compile_pattern(pattern: str) -> Any:
    """An RE2 object that ignores case. Raises BadPattern."""
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    options.max_mem = MAX_PATTERN_BYTES_OF_MEMORY
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as problem:
        raise BadPattern(_message(problem)) from None


def _with_search(rule: Rule) -> Rule:
    rule = replace(rule, examples=_usable(rule.examples))
    alternatives = [f"(?:{rule.pattern})"] if rule.pattern else []
    if rule.pattern:
        compile_pattern(rule.pattern)  # by itself: "a)|(?:b" must not become valid inside the group
    alternatives += [_keyword_pattern(keyword) for keyword in rule.keywords if keyword.strip()]
    if not alternatives:
        return replace(rule, search=None)
    return replace(rule, search=compile_pattern("|".join(alternatives)).search)


def _usable(examples: tuple[str, ...]) -> tuple[str, ...]:
    """A rule whose examples are all empty must not become one that matches everything."""
    said = tuple(example for example in examples if example.strip())
    if examples and not said:
        raise BadPattern("none of its examples says anything")
    if len(said) > MAX_EXAMPLES:
        raise BadPattern(f"more than {MAX_EXAMPLES} examples")
    return said


def _keyword_pattern(keyword: str) -> str:
    """A keyword counts from the start of a word, so "order" finds "orders" and not "border"."""
    keyword = keyword.strip()
    begins_a_word = re.match(r"[A-Za-z0-9]", keyword) is not None
    return (r"\b" if begins_a_word else "") + str(re2.escape(keyword))


def _message(problem: Exception) -> str:
    said = problem.args[0] if problem.args else "not a valid pattern"
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
