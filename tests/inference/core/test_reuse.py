"""KV of earlier turns and equal beginnings is used again, never a wrong one, and the answer stays the same."""

from __future__ import annotations

import pytest

from inference.core import prefix
from inference.core.messages import Cancel, Forget
from tests.inference.core.driver import admit

TALK = b"conversation"
GLUE = [2, 10, 1, 11]  # what a template puts between two turns


def cold(make_driver, prompt, max_tokens=8, **options):
    return make_driver(**options).generate(admit(prompt, max_tokens=max_tokens))


@pytest.mark.parametrize("family", ["llama", "qwen2", "gemma3_text"])
@pytest.mark.parametrize("num_prompt", [5, 16, 40])
def test_the_second_turn_prefills_only_what_is_new(make_driver, random_prompt, family, num_prompt) -> None:
    driver = make_driver(family)
    history = random_prompt(num_prompt)
    num_new = 0
    for turn in range(4):
        request = admit(history, max_tokens=9, conversation=TALK)
        answer = driver.generate(request)
        assert answer == cold(make_driver, history, 9, family=family)
        end = driver.end(request)
        if turn:
            assert end.prefilled_tokens == num_new + 1
            assert end.reused_head_tokens == len(history) - num_new - 1
            assert end.reused_prefix_tokens == 0
        new = [*GLUE, *random_prompt(6)]
        num_new = len(new)
        history = [*history, *answer, *new]


def test_the_same_prompt_reuses_full_blocks_without_a_conversation(driver, random_prompt) -> None:
    prompt = random_prompt(40)
    first, second = admit(prompt), admit(prompt)
    assert driver.generate(first) == driver.generate(second)
    assert driver.end(second).reused_prefix_tokens == 32
    assert driver.end(second).reused_head_tokens == 0
    assert driver.end(second).prefilled_tokens == 8


def test_the_last_prompt_token_is_always_computed(driver, random_prompt) -> None:
    prompt = random_prompt(32)
    first, second = admit(prompt, conversation=TALK), admit(prompt, conversation=TALK)
    assert driver.generate(first) == driver.generate(second)
    assert driver.end(second).prefilled_tokens == 1
    assert driver.end(second).reused_head_tokens == 31


def test_nothing_is_shared_under_another_salt(driver, random_prompt) -> None:
    prompt = random_prompt(64)
    driver.generate(admit(prompt, salt=b"one", conversation=TALK))
    other = admit(prompt, salt=b"two", conversation=TALK)
    driver.generate(other)
    assert (driver.end(other).reused_head_tokens, driver.end(other).reused_prefix_tokens) == (0, 0)
    same = admit(prompt, salt=b"one")
    driver.generate(same)
    assert driver.end(same).reused_prefix_tokens > 0


def test_a_constant_hash_never_serves_wrong_kv(make_driver, random_prompt, monkeypatch) -> None:
    prompts = [random_prompt(48) for _ in range(6)]
    expected = [cold(make_driver, prompt) for prompt in prompts]
    monkeypatch.setattr(prefix.PrefixCache, "_key", lambda *parts: b"constant")
    driver = make_driver()
    requests = [admit(prompt) for prompt in prompts]
    assert [driver.generate(request) for request in requests] == expected
    assert driver.loop.stats().reused_prefix_tokens == 0


def test_edits_regenerations_and_branches_equal_cold_runs(make_driver, random_prompt) -> None:
    """KV-01: every branch answers like a cold run and reuses exactly what was computed of it, tail included."""
    driver = make_driver()

    def ask(history: list[int], common: int) -> list[int]:
        """Ask warm, compare with cold; `common` leading tokens were computed before in this conversation."""
        request = admit(history, max_tokens=9, conversation=TALK)
        answer = driver.generate(request)
        assert answer == cold(make_driver, history, 9)
        assert driver.end(request).reused_head_tokens == common
        assert driver.end(request).reused_prefix_tokens == 0
        return answer

    user = [random_prompt(n) for n in (21, 9, 13)]
    first = user[0]
    answer_1 = ask(first, 0)
    second = [*first, *answer_1, *GLUE, *user[1]]
    answer_2 = ask(second, len(first) + 8)
    third = [*second, *answer_2, *GLUE, *user[2]]
    answer_3 = ask(third, len(second) + 8)
    ask(third, len(third) - 1)  # regenerate
    edited = [*first, *answer_1, *GLUE, *random_prompt(11)]
    edited_answer = ask(edited, len(first) + len(answer_1) + len(GLUE))
    ask([*third, *answer_3, *GLUE, 9], len(third) + 8)  # back to the first branch
    ask([*edited, *edited_answer, *GLUE, 9], len(edited) + 8)
    ask(second, len(second) - 1)  # the last two turns deleted


def test_two_tabs_go_on_from_different_points_at_once(make_driver, random_prompt) -> None:
    """KV-01: both stay exact, and both are warm afterwards."""
    driver = make_driver()
    start = random_prompt(21)
    answer = driver.generate(admit(start, conversation=TALK))
    branches = [[*start, *answer[:cut], *GLUE, *random_prompt(7)] for cut in (8, 5, 2)]
    requests = [admit(branch, max_tokens=12, conversation=TALK) for branch in branches]
    driver.run(*requests)
    for request, branch in zip(requests, branches, strict=True):
        assert driver.ids(request) == cold(make_driver, branch, 12)
        assert driver.end(request).reused_head_tokens >= 21
    for request, branch in zip(requests, branches, strict=True):
        follow_up = admit([*branch, *driver.ids(request), *GLUE], conversation=TALK)
        assert driver.generate(follow_up) == cold(make_driver, follow_up.prompt_ids)
        assert driver.end(follow_up).prefilled_tokens == len(GLUE) + 1


@pytest.mark.parametrize("ending", ["length", "stop", "eos", "cancel"])
def test_after_any_ending_the_next_turn_reuses_what_was_shown(make_driver, random_prompt, ending) -> None:
    """KV-02: kept is what ran through the model and was shown; a last token that was only sampled is not."""
    driver = make_driver()
    prompt = random_prompt(21)
    whole = cold(make_driver, prompt, 30)
    if ending == "length":
        request = admit(prompt, max_tokens=5, conversation=TALK)
        driver.generate(request)
        shown, num_lost = whole[:5], 1
    elif ending == "eos":
        end_at = next(i for i in range(5, 30) if whole[i] not in whole[:i])
        request = admit(prompt, max_tokens=30, conversation=TALK, stop_ids=[whole[end_at]])
        assert driver.generate(request) == whole[: end_at + 1]
        shown, num_lost = whole[:end_at], 0
    else:
        request = admit(prompt, max_tokens=30, conversation=TALK)
        driver.step(request)
        while len(driver.ids(request)) < 8:
            driver.step()
        keep = 6 if ending == "stop" else -1
        driver.cancel(request, keep, reason="stop" if ending == "stop" else "cancelled")
        shown, num_lost = (whole[:6], 0) if ending == "stop" else (whole[:8], 1)
    assert driver.end(request).reason == {"eos": "stop", "cancel": "cancelled"}.get(ending, ending)
    history = [*prompt, *shown, *GLUE, *random_prompt(5)]
    follow_up = admit(history, conversation=TALK)
    assert driver.generate(follow_up) == cold(make_driver, history)
    assert driver.end(follow_up).prefilled_tokens == len(GLUE) + 5 + num_lost
    assert driver.end(follow_up).reused_head_tokens == len(prompt) + len(shown) - num_lost


def test_a_turn_cancelled_early_does_not_cost_the_turn_before(make_driver, random_prompt) -> None:
    driver = make_driver(step_tokens=16)
    prompt = random_prompt(60)
    driver.generate(admit(prompt, conversation=TALK))
    again = admit(prompt, conversation=TALK)
    driver.step(again, Cancel(again.id, "cancelled"))
    third = admit(prompt, conversation=TALK)
    driver.generate(third)
    assert driver.end(third).reused_head_tokens == 59


def test_forgetting_frees_the_conversation_and_only_it(driver, random_prompt) -> None:
    shared = random_prompt(32)
    kept, dropped = [*shared, *random_prompt(20)], [*shared, *random_prompt(20)]
    driver.generate(admit(kept, conversation=b"kept"))
    driver.generate(admit(dropped, conversation=b"dropped"))
    cached = driver.loop.stats().blocks_cached
    driver.step(Forget(b"dropped"), Forget(b"never seen"))
    stats = driver.loop.stats()
    assert stats.forgotten_blocks == cached - stats.blocks_cached == 2
    again, other = admit(dropped, conversation=b"dropped"), admit(kept, conversation=b"kept")
    driver.generate(again)
    driver.generate(other)
    assert driver.end(again).reused_head_tokens == 0
    assert driver.end(again).reused_prefix_tokens == 32
    assert driver.end(other).reused_head_tokens == 51


def test_forgetting_a_user_frees_all_of_theirs_and_nobody_elses(driver, random_prompt) -> None:
    mine, theirs = random_prompt(60), random_prompt(60)
    driver.generate(admit(mine, salt=b"me"))  # belongs to no conversation
    driver.generate(admit(random_prompt(60), salt=b"me", conversation=TALK))
    kept_of_me = driver.loop.stats().blocks_cached
    driver.generate(admit(theirs, salt=b"them", conversation=b"other"))
    cached = driver.loop.stats().blocks_cached
    driver.step(Forget(b"", salt=b"me"))
    stats = driver.loop.stats()
    assert stats.forgotten_blocks == cached - stats.blocks_cached == kept_of_me > 0
    again, other = admit(mine, salt=b"me"), admit(theirs, salt=b"them", conversation=b"other")
    driver.generate(again)
    driver.generate(other)
    assert driver.end(again).reused_prefix_tokens == 0
    assert driver.end(other).reused_head_tokens == 59


def test_a_conversation_forgotten_while_it_runs_leaves_nothing(driver, random_prompt) -> None:
    request = admit(random_prompt(40), conversation=TALK, max_tokens=20)
    driver.step(request)
    driver.step()
    driver.step(Forget(TALK))
    driver.run()
    assert driver.end(request).reason == "length"
    assert driver.loop.stats().blocks_cached == 0


def test_idle_conversations_never_make_a_new_request_wait(make_driver, random_prompt) -> None:
    driver = make_driver(num_blocks=16)
    for number in range(20):
        driver.generate(admit(random_prompt(40), conversation=str(number).encode()))
    request = admit(random_prompt(200), max_tokens=8)
    pack = driver.step(request)
    assert pack.stats.running == 1
    assert pack.stats.evicted_blocks > 0
    driver.run()
    assert driver.ids(request) == cold(make_driver, request.prompt_ids)


def test_an_evicted_tail_costs_only_the_tail(make_driver, random_prompt) -> None:
    """Leaf first: what is left of a head is its beginning, and it still gives the right answer."""
    driver = make_driver(num_blocks=8)
    prompt = random_prompt(70)  # five blocks
    driver.generate(admit(prompt, conversation=TALK))
    driver.generate(admit(random_prompt(60)))  # takes the three others and evicts the tail
    again = admit(prompt, conversation=TALK)
    assert driver.generate(again) == cold(make_driver, prompt)
    assert 0 < driver.end(again).reused_head_tokens < 69


def test_a_follow_up_that_fills_the_whole_pool_is_still_served(make_driver, random_prompt) -> None:
    """While a partial block is copied its source takes a place too: without giving that up nothing would ever fit."""
    driver = make_driver(num_blocks=4)
    start = random_prompt(40)
    driver.generate(admit(start, conversation=TALK, max_tokens=4))
    branch = [*start[:37], *random_prompt(25)]
    request = admit(branch, conversation=TALK, max_tokens=2)
    assert driver.generate(request) == cold(make_driver, branch, 2)
