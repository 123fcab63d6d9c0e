"""What a question would meet, told step by step for an operator. Reads rules, guard and entries, serves nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from asgiref.sync import async_to_sync

from semcache import service
from semcache.decision import Decision
from semcache.lending import lent
from semcache.rules import policy
from semcache.rules.examples import Likeness
from semcache.rules.policy import BadPattern, Rule
from semcache.rules.rulebook import read_rules
from semcache.text import admission, guard, wording
from semcache.text.admission import WhyPrivate
from semcache.text.guard import Verdict
from semcache.text.normalize import canonical


@dataclass(frozen=True, slots=True)
class TriedRule:
    """A rule in order of precedence; `problem` is why it can not match at all.

    `likeness` is None where examples decide nothing, or nobody compared them.
    """

    rule: Rule
    is_match: bool
    is_winner: bool
    problem: str = ""
    likeness: Likeness | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """`verdicts` compare with another question, where one was given; `why_private` is what stands against sharing."""

    text: str
    language: str
    lasting: str
    stands_alone: bool
    why_private: WhyPrivate | None
    rules: tuple[TriedRule, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def winner(self) -> Rule | None:
        return next((tried.rule for tried in self.rules if tried.is_winner), None)

    @property
    def may_serve(self) -> bool:
        return guard.may_serve(self.verdicts)


def explained(
    text: str, tenant: str = "", model: str = "", stored: str = "", examples: Sequence[Likeness] = ()
) -> Explanation:
    """The explanation of `text` as the first turn of a conversation, by the rules as they are in the database now.

    `examples` is what a look-up found out about them.
    """
    text = canonical(text)
    bad: list[TriedRule] = []
    rules = policy.compiled(read_rules(), on_bad=lambda rule, problem: bad.append(_skipped(rule, problem)))
    compared = {one.rule_id: one for one in examples}
    like = {one.rule_id for one in examples if one.is_near}
    winner = policy.choose(rules, text, tenant, model, like)
    tried = [
        TriedRule(
            rule,
            rule.matches(text, tenant, model, like),
            rule is winner,
            likeness=compared.get(rule.id),
        )
        for rule in rules
    ]
    return Explanation(
        text=text,
        language=wording.language(text),
        lasting=wording.lasting(text),
        stands_alone=wording.says_enough(text),
        why_private=admission.why_private(text),
        rules=(*tried, *bad),
        verdicts=_compared(canonical(stored), text) if stored else (),
    )


def _compared(stored: str, text: str) -> tuple[Verdict, ...]:
    """() for what the cache would not compare either: the guard takes time with the square of the length."""
    is_short = max(len(stored), len(text)) <= wording.MAX_SEMANTIC_CHARS
    return guard.verdicts(stored, text) if is_short else ()


def decision_on(text: str, tenant: str, owner: str, model: str = "") -> Decision | None:
    """What the cache would do with the question now, uncounted; None while nobody lends an embedder.

    The database's work is done on other threads, as for every question.
    """
    return async_to_sync(decided)(text, tenant, owner, model)


async def decided(text: str, tenant: str, owner: str, model: str = "") -> Decision | None:
    """The same on the caller's event loop."""
    asked = await lent(text, tenant, owner, model)
    return None if asked is None else await service.tried(asked.question, asked.embed, asked.verify)


def _skipped(rule: Rule, problem: BadPattern) -> TriedRule:
    return TriedRule(rule, is_match=False, is_winner=False, problem=str(problem))
