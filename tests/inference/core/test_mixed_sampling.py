"""Every sequence of a batch has its own sampling, and a seeded answer is the same wherever and however it is made."""

from __future__ import annotations

import pytest

from inference.core.messages import SamplingSpec
from tests.inference.core.driver import admit

SPECS = [
    SamplingSpec(temperature=1.5, seed=7),
    SamplingSpec(temperature=0.9, top_p=0.8, min_p=0.01, seed=9, repetition_penalty=1.2),
    SamplingSpec(temperature=1.2, top_k=600, seed=11, logit_bias=[(5, 3.0), (9, -100.0)]),
    SamplingSpec(temperature=1.0, top_p=0.5, seed=13, presence_penalty=0.6, frequency_penalty=0.3),
    SamplingSpec(temperature=0.7, top_k=20, seed=15, min_tokens=20, logprobs=2),
    SamplingSpec(repetition_penalty=1.3, min_tokens=10),
]


@pytest.mark.parametrize("is_reversed", [False, True])
def test_ba_03_four_settings_in_one_batch_each_keep_their_own(make_driver, is_reversed: bool) -> None:
    """BA-03: A greedy and short, B hot and seeded, C greedy with an end of its own, D the best of one."""
    prompt = [5, 6, 7]
    alone = make_driver()
    greedy = alone.generate(admit(prompt, max_tokens=32))
    hot_spec = SamplingSpec(temperature=1.5, seed=7)
    hot_alone = alone.generate(admit(prompt, max_tokens=32, sampling=hot_spec))
    a = admit(prompt, max_tokens=4)
    b = admit(prompt, max_tokens=32, sampling=hot_spec)
    c = admit(prompt, max_tokens=32, stop_ids=[greedy[6]])
    d = admit(prompt, max_tokens=32, sampling=SamplingSpec(temperature=1.0, top_k=1))
    driver = make_driver()
    driver.run(*([d, c, b, a] if is_reversed else [a, b, c, d]))
    assert (driver.ids(a), driver.end(a).reason) == (greedy[:4], "length")
    assert driver.ids(b) == hot_alone
    assert (driver.ids(c), driver.end(c).reason) == (greedy[: greedy.index(greedy[6]) + 1], "stop")
    assert driver.ids(d) == greedy


def answers_alone(make_driver, prompts) -> list[list[int]]:
    return [
        make_driver().generate(admit(prompt, max_tokens=24, sampling=spec))
        for prompt, spec in zip(prompts, SPECS, strict=True)
    ]


def requests(prompts, **fields):
    return [
        admit(prompt, max_tokens=24, sampling=spec, **fields)
        for prompt, spec in zip(prompts, SPECS, strict=True)
    ]


@pytest.fixture
def prompts(random_prompt) -> list[list[int]]:
    return [random_prompt(length) for length in (20, 33, 5, 48, 16, 27)]


def test_company_and_order_of_arrival_do_not_matter(make_driver, prompts) -> None:
    alone = answers_alone(make_driver, prompts)
    for is_reversed in (False, True):
        driver = make_driver(step_tokens=48)
        batch = requests(prompts)
        for request in batch[::-1] if is_reversed else batch:  # they join a running batch
            driver.step(request)
        driver.run()
        assert [driver.ids(request) for request in batch] == alone


def test_a_preemption_does_not_matter(make_driver, prompts) -> None:
    alone = answers_alone(make_driver, prompts)
    driver = make_driver(num_blocks=16)
    batch = requests(prompts)
    driver.run(*batch)
    assert driver.loop.stats().preemptions > 0
    assert [driver.ids(request) for request in batch] == alone


def test_reuse_does_not_matter(make_driver, prompts) -> None:
    alone = answers_alone(make_driver, prompts)
    driver = make_driver()
    driver.run(*requests(prompts))
    again = requests(prompts)
    driver.run(*again)
    assert sum(driver.end(request).reused_prefix_tokens for request in again) >= 16 + 32 + 32 + 16
    assert [driver.ids(request) for request in again] == alone


def test_another_seed_gives_another_answer(make_driver) -> None:
    answers = {
        tuple(
            make_driver().generate(
                admit([5, 6], max_tokens=16, sampling=SamplingSpec(temperature=1.5, seed=seed))
            )
        )
        for seed in range(5)
    }
    assert len(answers) == 5


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_min_tokens_holds_back_every_end_of_its_own_sequence_only(
    make_driver, load_tiny, temperature: float
) -> None:
    """Half of the vocabulary ends these answers: without a mask they end at once."""
    every_id = list(range(load_tiny("llama").vocab_size))
    ends = every_id[::2]
    driver = make_driver()
    held = admit(
        [5, 6, 7],
        max_tokens=60,
        stop_ids=ends,
        sampling=SamplingSpec(temperature, seed=3, min_tokens=12),
    )
    free = admit([5, 6, 7], max_tokens=60, stop_ids=every_id, sampling=SamplingSpec(temperature, seed=3))
    driver.run(held, free)
    assert len(driver.ids(free)) == 1
    assert not set(driver.ids(held)[:12]) & set(ends)
    assert driver.end(held).reason == "stop"


@pytest.mark.parametrize(
    "fields",
    [
        {"stop_ids": [10_000]},
        {"stop_ids": [-1]},
        {"sampling": SamplingSpec(logit_bias=[(10_000, 1.0)])},
        {"sampling": SamplingSpec(logit_bias=[(-1, 1.0)])},
        {"sampling": SamplingSpec(logit_bias=[(1, float("nan"))])},
        {"sampling": SamplingSpec(logit_bias=[(1, 1e9)])},
        {"sampling": SamplingSpec(min_tokens=-1)},
    ],
)
def test_an_id_outside_the_vocabulary_or_an_impossible_bias_fails_alone(driver, fields) -> None:
    bad, good = admit([5, 6, 7], **fields), admit([5, 6, 7], max_tokens=4)
    driver.run(bad, good)
    assert driver.end(bad).error.startswith("invalid_request")
    assert driver.end(good).error == "" and len(driver.ids(good)) == 4
