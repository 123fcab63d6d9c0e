"""What the core answers is what transformers' own `generate()` answers, whatever it shares, splits or reuses."""

from __future__ import annotations

import pytest

from tests.inference.core.driver import admit

LENGTHS = [1, 5, 16, 17, 40, 100]


@pytest.mark.parametrize(
    "family", ["llama", "llama-plain", "llama-unfused", "qwen2", "qwen3", "mistral", "gemma2", "gemma3_text"]
)
def test_a_batch_answers_like_generate(make_driver, random_prompt, reference, family) -> None:
    driver = make_driver(family)
    requests = [admit(random_prompt(length), max_tokens=20) for length in LENGTHS]
    driver.run(*requests)
    for request in requests:
        assert driver.ids(request) == reference(request.prompt_ids, 20, family)


@pytest.mark.parametrize("family", ["llama", "llama-plain", "qwen2"])
def test_batched_equals_alone_in_any_order(make_driver, random_prompt, family) -> None:
    prompts = [random_prompt(length) for length in LENGTHS]
    alone = [make_driver(family).generate(admit(prompt, max_tokens=12)) for prompt in prompts]
    for order in (prompts, prompts[::-1]):
        driver = make_driver(family)
        requests = [admit(prompt, max_tokens=12) for prompt in order]
        for request in requests:  # rows join and leave a running batch
            driver.step(request)
        driver.run()
        answers = {tuple(request.prompt_ids): driver.ids(request) for request in requests}
        assert [answers[tuple(prompt)] for prompt in prompts] == alone


@pytest.mark.parametrize("family", ["llama", "llama-plain", "llama-unfused", "gemma2", "gemma3_text"])
def test_chunked_prefill_equals_whole_prefill(make_driver, random_prompt, family) -> None:
    prompt = random_prompt(150)
    whole, chunked = make_driver(family), make_driver(family, step_tokens=16)
    request = admit(prompt, max_tokens=10)
    assert chunked.generate(request) == whole.generate(admit(prompt, max_tokens=10))
    assert [report.done for report in chunked.progress] == [*range(16, 150, 16), 150]


@pytest.mark.parametrize("block_tokens", [1, 7, 64])
def test_the_block_size_does_not_matter(make_driver, random_prompt, reference, block_tokens) -> None:
    driver = make_driver(block_tokens=block_tokens)
    prompt = random_prompt(30)
    assert driver.generate(admit(prompt, max_tokens=12)) == reference(prompt, 12)


def test_eight_at_once_share_their_forwards(driver, random_prompt) -> None:
    num_tokens = 32
    driver.run(*[admit(random_prompt(10 + i), max_tokens=num_tokens) for i in range(8)])
    stats = driver.loop.stats()
    assert stats.generated_tokens == 8 * num_tokens
    assert stats.decode_forwards <= 1.3 * num_tokens


def test_running_streams_advance_in_every_step_while_a_long_prompt_is_read(
    make_driver, random_prompt
) -> None:
    driver = make_driver(step_tokens=32)
    streams = [admit(random_prompt(5), max_tokens=60) for _ in range(3)]
    driver.step(*streams)
    long = admit(random_prompt(400), max_tokens=2)
    pack = driver.step(long)
    num_steps = 0
    while long.id not in driver.tokens:
        assert {token.id for token in pack.tokens} >= {stream.id for stream in streams}
        pack = driver.step()
        num_steps += 1
    assert num_steps >= 400 // 32


@pytest.mark.model
def test_the_real_model_answers_like_generate(real_model_folder) -> None:
    from inference.config import EngineConfig
    from inference.core.startup import assemble
    from inference.models.loader import load_served
    from tests.inference.core.conftest import plain_generate
    from tests.inference.core.driver import Driver

    model = load_served(real_model_folder, "fp32", "cpu")
    driver = Driver(assemble(EngineConfig(kv_memory_mb=64), model).loop)
    prompts = [
        [1, 4093, 198, 1780, 338, 260, 3575, 282, 4649, 47],
        [1, 520, 9531, 198, *range(500, 540)],
    ]
    requests = [admit(prompt, max_tokens=16, conversation=bytes([n])) for n, prompt in enumerate(prompts)]
    driver.run(*requests)
    for request in requests:
        assert driver.ids(request) == plain_generate(real_model_folder, request.prompt_ids, 16)
    history = [*prompts[0], *driver.ids(requests[0]), 2, 198, 1, 4093, 198, 540]
    follow_up = admit(history, max_tokens=8, conversation=bytes([0]))
    assert driver.generate(follow_up) == plain_generate(real_model_folder, history, 8)
    assert driver.end(follow_up).prefilled_tokens == 6 + 1
