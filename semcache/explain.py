"""What a question would meet, told step by step for an operator. Reads rules and the guard, serves nothing.

Similarity is not part of it: vectors come from the answering flow, which is not asked here.
"""

from __future__ import annotations

from dataclasses import dataclass

from semcache import guard, policy, wording
from semcache.guard import Verdict
from semcache.normalize import canonical
from semcache.policy import BadPattern, Rule
from semcache.rulebook import read_rules


@dataclass(frozen=True, slots=True)
class TriedRule:
    """A rule in order of precedence; `problem` is why it can not match at all."""

    rule: Rule
    is_match: bool
    is_winner: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """`verdicts` compare with another question, where one was given."""

    text: str
    language: str
    lasting: str
    stands_alone: bool
    is_personal: bool
    rules: tuple[TriedRule, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def winner(self) -> Rule | None:
        return next((tried.rule for tried in self.rules if tried.is_winner), None)

    @property
    def may_serve(self) -> bool:
        return guard.may_serve(self.verdicts)


def explained(text: str, tenant: str = "", model: str = "", stored: str = "") -> Explanation:
    """The explanation of `text` as the first turn of a conversation, by the rules as they are in the database now."""
    text = canonical(text)
    bad: list[TriedRule] = []
    rules = policy.compiled(read_rules(), on_bad=lambda rule, problem: bad.append(_skipped(rule, problem)))
    winner = policy.choose(rules, text, tenant, model)
    tried = [TriedRule(rule, rule.matches(text, tenant, model), rule is winner) for rule in rules]
    return Explanation(
        text=text,
        language=wording.language(text),
        lasting=wording.lasting(text),
        stands_alone=wording.stands_alone(text, is_first_turn=True),
        is_personal=wording.is_personal(text),
        rules=(*tried, *bad),
        verdicts=guard.verdicts(canonical(stored), text) if stored else (),
    )


def _skipped(rule: Rule, problem: BadPattern) -> TriedRule:
    return TriedRule(rule, is_match=False, is_winner=False, problem=str(problem))
