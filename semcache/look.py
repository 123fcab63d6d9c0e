"""One look-up under way: what is known so far about a question, where its answers live, and how it ended.

Pure: no storage. Decides which scope and key a question reads from and writes to.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from enum import StrEnum

from semcache import wording
from semcache.decision import Candidate, Decision, Hit, Outcome, Question, Reason
from semcache.examples import Likeness
from semcache.normalize import clean, exact_key, sha256_of
from semcache.policy import Rule
from semcache.scope import Scope, widened


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
    _shared_scope: Scope | None = None
    # Of the text, whatever it is needed for; `vector` only where the question goes by its meaning.
    text_vector: tuple[float, ...] | None = None
    vector: tuple[float, ...] | None = None
    examples: tuple[Likeness, ...] = ()
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
        self._shared_scope = scope_of(self.question, self.text, self.rule)

    @property
    def shared_scope(self) -> Scope:
        """The scope of first turns, as wide as the rule's sharing says."""
        assert self._shared_scope is not None, "asked for before the scope was entered"
        return self._shared_scope

    @property
    def home(self) -> tuple[Scope, str]:
        """Scope and key of this question's own answer. With a history it is the owner's, whatever the rule shares:
        what was said before is nobody else's."""
        if not self.question.history:
            return self.shared_scope, exact_key(self.text, "")
        tenant, owner = self.question.tenant, self.question.owner
        own = replace(self.shared_scope, sharing="private", tenant=tenant, owner=owner)
        return own, exact_key(self.text, self.question.history)

    @property
    def exact_places(self) -> list[tuple[str, str]]:
        """(scope digest, key) where the same words may have been answered, in order of preference."""
        scope, key = self.home
        places = [(scope.digest(), key)]
        if self.question.history and self.goes_by_meaning:
            places.append((self.shared_scope.digest(), exact_key(self.text, "")))
        return places

    @property
    def goes_by_meaning(self) -> bool:
        """Whether the rule looks at meaning and the text needs nothing that was said before it."""
        is_first_turn = not self.question.history
        return self.rule.looks_at_meaning and wording.stands_alone(self.text, is_first_turn=is_first_turn)

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
        if self._shared_scope is None:
            return decision
        scope, key = self.home
        return replace(
            decision,
            scope=scope.digest(),
            prompt_sha256=key,
            sharing=scope.sharing,
            # What was answered with a history must not be found by its meaning, which lacks that history.
            vector=None if self.question.history else self.vector,
            is_storable=True,
        )


def scope_of(question: Question, text: str, rule: Rule) -> Scope:
    """Where a first turn with this text belongs under this rule."""
    # Rules share topics; a text that speaks of its asker is theirs, whatever topic the rule found in it.
    sharing = "private" if wording.is_personal(text) else rule.sharing
    tenant, owner = widened(sharing, question.tenant, question.owner)
    return Scope(
        sharing=sharing,
        tenant=tenant,
        owner=owner,
        model=question.model,
        model_revision=question.model_revision,
        system_prompt_sha256=sha256_of(clean(question.system_prompt)),
        parameters=question.parameters,
        language=wording.language(text),
        epoch=question.epoch,
    )
