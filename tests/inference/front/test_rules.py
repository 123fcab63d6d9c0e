"""Admission, readiness, owners' keys and counters: small rules, each with its own test."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference.core.messages import CoreStats, SamplingSpec
from inference.errors import ContextLengthExceeded, InvalidRequest, QueueFull
from inference.front.admission import Limits, Load, answer_tokens, check_context, check_queue, estimate_tokens
from inference.front.counters import Counters
from inference.front.ownership import OwnerKeys, new_secret, secret_id
from inference.front.readiness import Readiness
from inference.front.sampling import SamplingDefaults, resolve
from inference.types import Owner, Sampling, Segment

LIMITS = Limits(max_queue=2, max_queued_tokens=100, max_batch=4, max_output_tokens=50, max_context=200)


def test_requests_for_which_the_batch_has_room_do_not_count_as_waiting() -> None:
    check_queue(LIMITS, Load(num_queued=5, num_running=0, queued_tokens=5), 1)
    with pytest.raises(QueueFull):
        check_queue(LIMITS, Load(num_queued=2, num_running=4, queued_tokens=2), 1)


def test_the_queue_is_bounded_in_tokens_but_one_large_prompt_may_wait_alone() -> None:
    check_queue(LIMITS, Load(0, 4, 0), 150)
    check_queue(LIMITS, Load(1, 4, 60), 40)
    with pytest.raises(QueueFull):
        check_queue(LIMITS, Load(1, 4, 60), 41)


def test_a_slow_engine_lets_fewer_tokens_wait_as_measured() -> None:
    slow = replace(LIMITS, target_ttft_s=2.0, prefill_tokens_per_s=25.0)
    check_queue(slow, Load(1, 4, 40), 10)
    with pytest.raises(QueueFull, match="40 prompt tokens are waiting, 50 may") as refusal:
        check_queue(slow, Load(1, 4, 40), 61)
    assert refusal.value.retry_after_s == pytest.approx(51 / 25)
    fast = replace(slow, prefill_tokens_per_s=1e6)
    with pytest.raises(QueueFull):
        check_queue(fast, Load(1, 4, 60), 41)


def test_the_time_to_come_back_grows_with_the_queue_within_bounds() -> None:
    def retry_after(num_queued: int, seconds: float) -> float:
        with pytest.raises(QueueFull) as refusal:
            check_queue(LIMITS, Load(num_queued, 4, 1, seconds), 1)
        assert refusal.value.retry_after_s is not None
        return refusal.value.retry_after_s

    assert retry_after(2, 0.001) == 1.0
    assert retry_after(4, 3.0) == pytest.approx(6.0)
    assert retry_after(1000, 3.0) == 30.0


def test_the_window_holds_the_prompt_and_at_least_one_token() -> None:
    check_context(LIMITS, 199)
    with pytest.raises(ContextLengthExceeded, match=r"200 .*200"):
        check_context(LIMITS, 200)


def test_an_answer_is_capped_by_window_and_server() -> None:
    assert answer_tokens(LIMITS, 100, None) == 50
    assert answer_tokens(LIMITS, 190, None) == 10
    assert answer_tokens(LIMITS, 100, 7) == 7
    assert answer_tokens(LIMITS, 100, 1000) == 50


def test_the_estimate_is_never_above_what_text_can_need() -> None:
    assert estimate_tokens([]) == 0
    assert estimate_tokens([Segment("user", "x" * 1000), Segment("assistant", "y" * 600)]) == 100
    assert estimate_tokens([Segment("user", "你" * 160)]) == 30


def resolved(sampling: Sampling, defaults: SamplingDefaults | None = None) -> SamplingSpec:
    return resolve(sampling, defaults or SamplingDefaults(), range(100).__contains__)


def test_defaults_of_the_model_fill_what_was_not_given() -> None:
    spec = resolved(Sampling(top_k=5, seed=2**64 - 1), SamplingDefaults(temperature=0.2, top_p=0.9, top_k=50))
    assert (spec.temperature, spec.top_p, spec.top_k, spec.seed) == (0.2, 0.9, 5, 2**63 - 1)
    assert resolved(Sampling()).seed != resolved(Sampling()).seed


def test_what_was_asked_for_reaches_the_core() -> None:
    spec = resolved(
        Sampling(min_tokens=3, max_tokens=3, logit_bias=((99, -100.0), (0, 100.0)), stop_ids=(5,))
    )
    assert (spec.min_tokens, spec.logit_bias) == (3, [(99, -100.0), (0, 100.0)])


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(min_tokens=-1),
        Sampling(min_tokens=5, max_tokens=4),
        Sampling(stop_ids=(100,)),
        Sampling(stop_ids=(-1,)),
        Sampling(stop_ids=(1,) * 65),
        Sampling(logit_bias=((100, 1.0),)),
        Sampling(logit_bias=((-1, 1.0),)),
        Sampling(logit_bias=((1, 100.5),)),
        Sampling(logit_bias=((1, float("nan")),)),
        Sampling(logit_bias=((1, float("-inf")),)),
        Sampling(logit_bias=((1, 1.0),) * 1025),
    ],
)
def test_sampling_that_cannot_be_used_is_refused(sampling: Sampling) -> None:
    with pytest.raises(InvalidRequest):
        resolved(sampling)


def test_keys_differ_for_every_owner_and_never_meet_by_joined_names() -> None:
    keys = OwnerKeys("secret")
    owners = [Owner("a", "b"), Owner("ab", ""), Owner("a", "c"), Owner("b", "b"), Owner("", "ab")]
    assert len({keys.salt(owner) for owner in owners}) == len(owners)
    assert keys.salt(Owner("a", "b", "x")) == keys.salt(Owner("a", "b", "y"))
    assert keys.conversation(Owner("a", "b")) == b""
    assert keys.conversation(Owner("a", "b", "x")) != keys.conversation(Owner("a", "c", "x"))
    assert OwnerKeys("").salt(owners[0]) != OwnerKeys("").salt(owners[0])
    with pytest.raises(InvalidRequest):
        keys.salt(Owner("a\0b", "c"))


def test_a_secrets_id_tells_it_from_others_and_not_what_it_is() -> None:
    secret = new_secret()
    assert secret_id(secret) == secret_id(secret) != secret_id(new_secret())
    assert secret not in secret_id(secret)


def test_readiness_follows_tokens_only() -> None:
    time = [0.0]
    readiness = Readiness(interval_s=5, timeout_s=2, give_up_s=10, clock=lambda: time[0])
    assert readiness.reason
    readiness.on_work(True)
    assert readiness.reason
    readiness.on_token()
    assert readiness.reason == ""
    assert not readiness.is_probe_due()
    time[0] = 5.0
    assert readiness.is_probe_due()
    readiness.on_work(True)
    time[0] = 6.9
    assert readiness.reason == ""
    time[0] = 7.1
    assert "no token" in readiness.reason
    readiness.on_token()
    assert readiness.reason == ""
    readiness.on_loading("the core ended")
    assert readiness.reason == "the core ended"


def test_counters_never_go_back_and_gauges_are_of_now() -> None:
    counters = Counters(core=CoreStats(steps=10, generated_tokens=7, running=3, step_seconds_sum=1.5))
    counters.on_core_lost()
    counters.core = CoreStats(steps=2, generated_tokens=1, running=1, step_seconds_sum=0.5)
    stats = counters.stats(reason="", core_restarts=1, live_logs=4)
    assert (stats.steps, stats.generated_tokens, stats.running, stats.step_seconds_sum) == (12, 8, 1, 2.0)
    assert (stats.is_ready, stats.core_restarts, stats.live_logs) == (True, 1, 4)
