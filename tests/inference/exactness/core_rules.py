"""The rules of exactness that the core keeps, each as one check that raises AssertionError when it is broken.

`test_rules` runs them on every family, `test_mutants` shows for each that a plausible mistake breaks it. A check gives
its evidence: reuse that hit, rows that shared a batch, blocks that were evicted.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
import torch

from inference.core.chunk import Chunk
from inference.core.messages import Admit, Forget, SamplingSpec
from inference.core.runner import Runner
from inference.models.attention import AttentionNotUsable
from inference.models.loader import LoadedModel
from tests.inference.core.driver import Driver, admit
from tests.inference.core.fakes import expected, make_fake_core, next_token, quoting_token
from tests.inference.core.visitors import CONVERSATIONS, visit
from tests.inference.exactness.evidence import Evidence, Logits, recorded

MakeDriver = Callable[..., Driver]
GLUE = [2, 10, 1, 11]  # what a template puts between two turns
NUM_TOKENS = 20
# Small enough that prompts are cut, rows preempted and kept KV evicted.
TIGHT = {"step_tokens": 48, "max_batch": 6, "block_tokens": 4, "num_blocks": 96}


# --- 1 and 9: the answer does not depend on company, reuse, cuts or preemption


@dataclass
class _Talk:
    """One conversation; `greedy` and seeded ones alternate."""

    key: bytes
    history: list[int]
    sampling: SamplingSpec
    asked: list[tuple[Admit, list[int]]] = field(default_factory=list)

    def ask(self) -> Admit:
        return admit(
            self.history,
            max_tokens=NUM_TOKENS,
            conversation=self.key,
            salt=self.key[:1],
            sampling=self.sampling,
        )

    def hear(self, request: Admit, answer: list[int], new: list[int]) -> None:
        self.asked.append((request, answer))
        self.history = [*request.prompt_ids, *answer, *GLUE, *new]


def answers_do_not_depend_on_company(make_driver: MakeDriver, family: str, seed: int = 1) -> Evidence:
    """Greedy and seeded answers of conversations that share a tight pool equal those of each request alone."""
    source, evidence = random.Random(seed), Evidence()
    talks = _talks(source)
    warm = make_driver(family, **TIGHT)
    with recorded() as warm_logits:
        for _ in range(3):
            _run_turn(warm, talks, source, evidence)
            _regenerate(warm, talks[-1], evidence)
    cold_logits = Logits()
    for talk in talks:
        for request, answer in talk.asked:
            with recorded() as logits:
                alone = make_driver(family).generate(_anew(request))
            compare(request, answer, alone, logits, evidence)
            cold_logits.rows |= logits.rows
    warm_logits.compare(cold_logits, evidence)
    stats = warm.loop.stats()
    evidence.drafted, evidence.accepted = stats.drafted_tokens, stats.accepted_tokens
    evidence.reused_head, evidence.reused_prefix = stats.reused_head_tokens, stats.reused_prefix_tokens
    evidence.preemptions, evidence.evictions = stats.preemptions, stats.evicted_blocks
    return evidence


def _talks(source: random.Random) -> list[_Talk]:
    """Two owners; two talks of each begin with the same words."""
    beginnings = {owner: _ids(source, 37) for owner in b"ab"}
    talks = []
    for number in range(8):
        owner = b"ab"[number % 2]
        own = _ids(source, source.choice([3, 20, 90]))
        sampling = SamplingSpec(temperature=1.1, top_p=0.9, seed=number) if number % 4 > 1 else SamplingSpec()
        talks.append(_Talk(bytes([owner, number]), [*beginnings[owner], *own], sampling))
    return talks


def _run_turn(driver: Driver, talks: list[_Talk], source: random.Random, evidence: Evidence) -> None:
    requests = [talk.ask() for talk in talks]
    for request in requests:  # rows join and leave a running batch
        driver.step(request)
    while driver.loop.has_work:
        evidence.largest_batch = max(evidence.largest_batch, len(driver.step().tokens))
    for talk, request in zip(talks, requests, strict=True):
        talk.hear(request, driver.ids(request), _ids(source, source.choice([1, 6, 30])))


def _regenerate(driver: Driver, talk: _Talk, evidence: Evidence) -> None:
    """The last question once more: a branch beside the kept one."""
    request = _anew(talk.asked[-1][0])
    talk.asked.append((request, driver.generate(request)))
    evidence.num_forks += driver.end(request).reused_head_tokens % TIGHT["block_tokens"] > 0


def _anew(request: Admit) -> Admit:
    return admit(
        request.prompt_ids,
        max_tokens=request.max_tokens,
        conversation=request.conversation,
        salt=request.salt,
        sampling=request.sampling,
    )


def compare(
    request: Admit, warm: Sequence[int], cold: Sequence[int], logits: Logits, evidence: Evidence
) -> None:
    evidence.num_answers += 1
    for place, (ours, theirs) in enumerate(zip(warm, cold, strict=True)):
        if ours != theirs:
            history = [*request.prompt_ids, *cold[:place]]
            assert request.sampling.temperature == 0, "a seeded answer differs"
            assert logits.is_near_tie(history), f"token {place} differs and is no tie"
            evidence.num_near_ties += 1
            return


def randomness_depends_on_seed_and_position_only(make_driver: MakeDriver, family: str) -> Evidence:
    """A seeded answer is the same alone, in company, on a second run and behind reused KV; seeds differ."""
    source, evidence = random.Random(9), Evidence()
    spec = SamplingSpec(temperature=1.3, seed=77)
    prompt = _ids(source, 40)
    alone = make_driver(family).generate(admit(prompt, max_tokens=24, sampling=spec))
    company = [
        admit(_ids(source, 10 * n + 1), max_tokens=24, sampling=SamplingSpec(temperature=2.0, seed=n))
        for n in range(4)
    ]
    driver = make_driver(family, **TIGHT)
    for _ in range(2):
        request = admit(prompt, max_tokens=24, sampling=spec)
        driver.run(*[_anew(other) for other in company], request)
        assert driver.ids(request) == alone
        evidence.num_answers += 1
    evidence.reused_prefix = driver.loop.stats().reused_prefix_tokens
    other_seed = admit(prompt, max_tokens=24, sampling=SamplingSpec(temperature=1.3, seed=78))
    assert driver.generate(other_seed) != alone
    return evidence


# --- 2: no block is lost


def blocks_add_up(num_requests: int = 2000, speculate: str = "off") -> Evidence:
    """Mixed requests with aborts, forks, preemptions and forgets: free + cached + used == total and no block is shared
    by mistake after every step (the driver asserts both), every answer is right as far as it went, nothing is used at
    the end, and nothing is known of conversations that are forgotten."""
    core = make_fake_core(num_blocks=36, max_batch=5, step_tokens=24, speculate=speculate)
    driver, evidence = core.driver, Evidence()
    model = core.runner.model = next_token if speculate == "off" else quoting_token
    visits = visit(driver, num_requests, seed=2)
    assert driver.finished.keys() == {request.id for request in visits.requests}
    for request in visits.requests:
        ids = driver.ids(request)
        assert ids == expected(request.prompt_ids, len(ids), model)
        if request.id not in visits.aborted:
            assert (driver.end(request).reason, len(ids)) == ("length", request.max_tokens)
            evidence.num_answers += 1
    stats = driver.loop.stats()
    assert (stats.blocks_used, stats.running, stats.waiting) == (0, 0, 0)
    for key in CONVERSATIONS:
        driver.step(Forget(key))
    assert len(core.kv.kept.conversations) == core.kv.kept.conversations.num_heads == 0
    evidence.drafted, evidence.accepted = stats.drafted_tokens, stats.accepted_tokens
    evidence.preemptions, evidence.evictions = stats.preemptions, stats.evicted_blocks
    evidence.reused_head, evidence.reused_prefix = stats.reused_head_tokens, stats.reused_prefix_tokens
    evidence.forgotten, evidence.classes = stats.forgotten_blocks, set(visits.steps_by_class)
    return evidence


# --- 3: a turn costs what is new


def a_turn_costs_what_is_new(make_driver: MakeDriver, family: str) -> Evidence:
    """From turn 2 on the prefilled tokens are at most the new ones, the glue and one."""
    source, evidence, driver = random.Random(3), Evidence(), make_driver(family)
    history = _ids(source, 33)
    allowed = len(history)
    for _ in range(5):
        request = admit(history, max_tokens=NUM_TOKENS, conversation=b"talk")
        answer = driver.generate(request)
        assert driver.end(request).prefilled_tokens <= allowed
        evidence.reused_head += driver.end(request).reused_head_tokens
        new = _ids(source, source.choice([1, 7, 40]))
        allowed = len(GLUE) + len(new) + 1
        history = [*history, *answer, *GLUE, *new]
        evidence.num_answers += 1
    return evidence


# --- 4: nothing of one owner is found by another


def owners_share_nothing(make_driver: MakeDriver, family: str) -> Evidence:
    """The same prompt hits for its owner and never for another, with or without the same conversation key."""
    source, evidence, driver = random.Random(4), Evidence(), make_driver(family)
    prompt = _ids(source, 100)
    for key in (b"", b"talk"):
        driver.generate(admit(prompt, salt=b"owner", conversation=key))
        mine, foreign = (admit(prompt, salt=salt, conversation=key) for salt in (b"owner", b"other" + key))
        assert driver.generate(foreign) == driver.generate(mine)
        end = driver.end(mine)
        evidence.reused_prefix += end.reused_prefix_tokens
        evidence.reused_head += end.reused_head_tokens
        theirs = driver.end(foreign)
        assert theirs.prefilled_tokens == len(prompt), "another owner's KV was found"
    return evidence


# --- 5: attention without metadata


def attention_refuses_a_plain_call(model: LoadedModel) -> None:
    """A model that is called past the runner raises, instead of looking at the future in silence."""
    with pytest.raises(AttentionNotUsable):
        model.model(input_ids=torch.tensor([[5, 6, 7, 8]]), use_cache=False)


# --- 8: poison


def poison_fails_alone(make_driver: MakeDriver, family: str) -> Evidence:
    """A request with broken numbers and one with an impossible value fail; their neighbours stay exact."""
    source, evidence, run = random.Random(8), Evidence(), Runner.run
    prompts = [_ids(source, n) for n in (5, 60, 130)]
    alone = [make_driver(family).generate(admit(prompt, max_tokens=12)) for prompt in prompts]
    poison = admit(_ids(source, 100), max_tokens=12)
    absurd = admit(_ids(source, 10), max_tokens=12, sampling=SamplingSpec(temperature=float("nan")))

    def poisoned(self: Runner, chunks: Sequence[Chunk]) -> torch.Tensor:
        rows = run(self, chunks).clone()
        ids = [chunk.sequence.id for chunk in chunks for _ in range(chunk.num_rows)]
        for key, row in zip(ids, rows, strict=True):
            if key == poison.id:
                row.fill_(float("nan"))
        return rows

    driver = make_driver(family, step_tokens=64)
    requests = [admit(prompt, max_tokens=12) for prompt in prompts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Runner, "run", poisoned)
        driver.run(requests[0], poison, requests[1], absurd, requests[2])
    assert [driver.end(bad).reason for bad in (poison, absurd)] == ["failed", "failed"]
    assert [driver.ids(request) for request in requests] == alone
    again = admit(poison.prompt_ids, max_tokens=4)
    assert driver.generate(again) == make_driver(family).generate(_anew(again)), "broken KV was found"
    evidence.num_answers = len(requests)
    return evidence


def _ids(source: random.Random, length: int) -> list[int]:
    return [source.randrange(3, 300) for _ in range(length)]
