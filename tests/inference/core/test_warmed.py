"""What was read ahead of a question is counted as used or as wasted, once, and reading ahead changes no answer."""

from __future__ import annotations

import pytest

from inference.core.messages import Admit, Cancel, Forget
from inference.core.warmed import WarmedBlocks
from inference.types import FinishReason
from tests.inference.core.driver import admit
from tests.inference.core.fakes import expected, make_fake_core

TALK = b"conversation"


def warm_up(prompt: list[int], conversation: bytes = TALK, **options: object) -> Admit:
    return admit(prompt, max_tokens=0, is_background=True, conversation=conversation, **options)


def prompt_of(length: int, start: int = 0) -> list[int]:
    return [(start + 7 * place) % 50 for place in range(length)]


def counts(core: object) -> tuple[int, int, int]:
    stats = core.driver.loop.stats()  # type: ignore[attr-defined]
    return stats.warmed_tokens, stats.warmed_used_tokens, stats.warmed_wasted_tokens


def test_a_question_uses_what_was_read_ahead_of_it() -> None:
    core = make_fake_core()
    size = core.kv.block_tokens
    history = prompt_of(4 * size + 1)
    core.driver.run(warm_up(history))
    assert counts(core) == (4 * size, 0, 0)
    question = admit([*history, 3, 1], max_tokens=4, conversation=TALK)
    core.driver.run(question)
    assert core.driver.ids(question) == expected(question.prompt_ids, 4)
    assert core.driver.end(question).prefilled_tokens <= 3
    assert counts(core) == (4 * size, 4 * size, 0)
    core.driver.step(Forget(TALK))
    assert counts(core) == (4 * size, 4 * size, 0), "what was used is not wasted as well"


def test_what_goes_before_a_question_comes_is_wasted() -> None:
    core = make_fake_core()
    size = core.kv.block_tokens
    core.driver.run(warm_up(prompt_of(3 * size)))
    core.driver.step(Forget(TALK))
    assert counts(core) == (3 * size, 0, 3 * size)


def test_what_others_push_out_is_wasted() -> None:
    core = make_fake_core(num_blocks=8)
    size = core.kv.block_tokens
    core.driver.run(warm_up(prompt_of(3 * size)))
    core.driver.run(admit(prompt_of(7 * size, 5), max_tokens=2, salt=b"other"))
    num_warmed, num_used, num_wasted = counts(core)
    assert (num_warmed, num_used) == (3 * size, 0)
    assert num_wasted >= 2 * size


def test_a_draft_that_is_read_twice_counts_what_was_computed() -> None:
    core = make_fake_core()
    size = core.kv.block_tokens
    draft = prompt_of(5 * size)
    core.driver.run(warm_up(draft[: 3 * size], id="short"))
    core.driver.run(warm_up(draft, id="long"))
    assert counts(core) == (5 * size, 0, 0)


@pytest.mark.parametrize("after", range(1, 4))
def test_a_warm_up_that_is_broken_off_leaves_what_it_has_read(after: int) -> None:
    core = make_fake_core(step_tokens=16)
    size = core.kv.block_tokens
    history = prompt_of(64)
    ahead = warm_up(history)
    core.driver.step(ahead)
    for _ in range(after - 1):
        core.driver.step()
    core.driver.step(Cancel(ahead.id, FinishReason.STOP))
    question = admit([*history, 3], max_tokens=3, conversation=TALK)
    core.driver.run(question)
    assert core.driver.ids(question) == expected(question.prompt_ids, 3)
    num_read = 16 * after // size * size
    assert counts(core)[1] == num_read


def test_blocks_are_counted_once() -> None:
    warmed = WarmedBlocks(16)
    for block in (1, 2, 3):
        warmed.add(block)
    warmed.use([1, 7])
    warmed.lose([1, 2])
    warmed.lose([2])
    assert (warmed.num_tokens, warmed.num_used_tokens, warmed.num_wasted_tokens) == (48, 16, 16)
