"""One look-up under way: what is known so far about a question, where its answers live, and how it ended.

Pure: no storage. Decides which scope and key a question reads from and writes to.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from enum import StrEnum

from semcache.decision import Candidate, Decision, Hit, Outcome, Question, Reason
from semcache.rules.examples import Likeness
from semcache.rules.policy import Rule
from semcache.scope import Scope, shared
from semcache.text import admission, context, wording
from semcache.text.admission import WhyPrivate
from semcache.text.normalize import clean, exact_key, sha256_of


class Dependency(StrEnum):
    """What a look-up may have to wait for."""

    STORE = "store"
    EMBEDDER = "embedder"
    VERIFIER = "verifier"


@dataclass(slots=True)
class Look:
    """Filled step by step; `ended` may be called at any step and tells what was known by then."""

    question: Question
    text: str
    _rule: Rule | None = None
    _own_scope: Scope | None = None
    # None where nobody else finds the answer; `why_private` tells why not where the rule shares.
    _shared_scope: Scope | None = None
    why_private: WhyPrivate | None = None
    # Of the text, whatever it is needed for; `vector` only where the question goes by its meaning.
    text_vector: tuple[float, ...] | None = None
    vector: tuple[float, ...] | None = None
    examples: tuple[Likeness, ...] = ()
    # What of the conversation the answer hangs on; None where only the same words after the same history will do.
    context: tuple[str, ...] | None = None
    candidates: tuple[Candidate, ...] = ()
    waits_for: Dependency = Dependency.STORE
    _steps: list[tuple[str, float]] = field(default_factory=list)
    _step_began: float = field(default_factory=time.perf_counter)

    @property
    def rule(self) -> Rule:
        assert self._rule is not None, "asked for before a rule was found"
        return self._rule

    @rule.setter
    def rule(self, rule: Rule) -> None:
        self._rule = rule

    def enter_scope(self) -> None:
        """From here on the question has a place: it may be read and its answer stored."""
        self._own_scope = own_scope_of(self.question, self.text)
        wide = shared(self._own_scope, self.rule.sharing)
        # Rules share topics; a text that speaks of its asker is theirs, whatever topic the rule found in it.
        self.why_private = admission.why_private(self.text) if wide else None
        self._shared_scope = None if self.why_private else wide
        self.context = self._hangs_on() if self.rule.looks_at_meaning else None

    def _hangs_on(self) -> tuple[str, ...] | None:
        if self.question.history:
            return context.hangs_on(self.text, self.question.turns)
        return () if wording.says_enough(self.text) else None

    @property
    def own_scope(self) -> Scope:
        assert self._own_scope is not None, "asked for before the scope was entered"
        return self._own_scope

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Where these words as a first turn may have an answer. The first is where theirs belongs: before promotion the
        owner's, else the one that the rule shares, beside which the owner keeps what was not to be shared."""
        if self._shared_scope is None:
            return (self.own_scope,)
        if self.rule.sharing == "promoted":
            return self.own_scope, self._shared_scope
        return self._shared_scope, self.own_scope

    @property
    def home(self) -> tuple[Scope, str]:
        """Scope and key of this question's own answer. With a history it is the owner's, whatever the rule shares:
        what was said before is nobody else's."""
        scope = self.own_scope if self.question.history else self.scopes[0]
        return scope, exact_key(self.text, self.question.history)

    @property
    def exact_places(self) -> list[tuple[str, str]]:
        """(scope digest, key) where the same words may have been answered, in order of preference."""
        scope, key = self.home
        own = [(scope.digest(), key)] if self.question.history else []
        if self.question.history and self.context != ():
            return own
        return own + [(scope.digest(), exact_key(self.text, "")) for scope in self.scopes]

    @property
    def goes_by_meaning(self) -> bool:
        return self.context is not None

    @property
    def embedded(self) -> str:
        """The text by whose vector the question is found."""
        return context.embedded(self.text, self.context or ())

    @property
    def searched(self) -> tuple[Scope, ...]:
        """Where answers to questions that mean the same may be. What hangs on a history is its owner's alone."""
        return (self.own_scope,) if self.context else self.scopes

    def step(self, name: str) -> None:
        """Note how long the step that just ended took."""
        now = time.perf_counter()
        self._steps.append((name, (now - self._step_began) * 1000))
        self._step_began = now

    def ended(self, outcome: Outcome, reason: Reason, hit: Hit | None = None) -> Decision:
        decision = Decision(
            outcome=outcome,
            reason=reason,
            hit=hit,
            rule=self._rule,
            examples=self.examples,
            text=self.text,
            candidates=self.candidates,
            steps=tuple(self._steps),
        )
        if self._own_scope is None:
            return decision
        scope, key = self.home
        is_counted = self.rule.sharing == "promoted" and not self.question.history and len(self.scopes) > 1
        return replace(
            decision,
            scope=scope.digest(),
            prompt_sha256=key,
            sharing=scope.sharing,
            why_private=self.why_private,
            own_scope=self.own_scope.digest(),
            public_scope=self.scopes[-1].digest() if is_counted else "",
            # Without its turns nobody can tell whether an answer hangs on its history.
            vector=None if self.question.history and not self.question.turns else self.vector,
            context=self.context or (),
            is_storable=True,
        )


def own_scope_of(question: Question, text: str) -> Scope:
    """Where the owner's own answers to first turns with this text belong."""
    return Scope(
        sharing="private",
        tenant=question.tenant,
        owner=question.owner,
        model=question.model,
        model_revision=question.model_revision,
        system_prompt_sha256=sha256_of(clean(question.system_prompt)),
        parameters=question.parameters,
        language=wording.language(text),
        epoch=question.epoch,
    )
