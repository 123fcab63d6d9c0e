from __future__ import annotations

from collections import Counter

import pytest
import torch

from inference.core import sampler
from inference.core.messages import SamplingSpec
from inference.core.sampler import Row, sample, uniform

VOCABULARY = 2000


@pytest.fixture
def logits() -> torch.Tensor:
    return torch.randn(1, VOCABULARY, generator=torch.Generator().manual_seed(5)) * 3


def draw(logits: torch.Tensor, num: int, **spec: float) -> Counter[int]:
    rows = [Row(SamplingSpec(seed=seed, **spec), [1, 2], 2) for seed in range(num)]
    return Counter(result.token for result in sample(logits.expand(num, -1), rows))


def test_the_random_number_depends_on_seed_and_position_only() -> None:
    assert uniform(7, 3) == uniform(7, 3)
    numbers = [uniform(seed, position) for seed in range(40) for position in range(40)]
    assert len(set(numbers)) == 1600
    assert 0.47 < sum(numbers) / 1600 < 0.53
    assert uniform(-(2**63), 0) != uniform(2**63, 0)


def test_draws_follow_the_distribution() -> None:
    weights = torch.tensor([[0.5, 0.3, 0.2]])
    for spec in ({}, {"top_p": 0.999}):
        counts = draw(weights.log(), 4000, temperature=1.0, **spec)
        for token, share in enumerate((0.5, 0.3, 0.2)):
            assert abs(counts[token] / 4000 - share) < 0.03


def test_temperature_flattens() -> None:
    counts = draw(torch.tensor([[2.0, 0.0]]), 4000, temperature=2.0)
    assert abs(counts[0] / 4000 - 0.731) < 0.03


def test_top_k_and_min_p_keep_only_the_best(logits: torch.Tensor) -> None:
    best = logits[0].topk(5).indices.tolist()
    assert set(draw(logits, 300, temperature=5.0, top_k=5)) <= set(best)
    assert set(draw(logits, 50, temperature=1.0, top_k=1)) == {best[0]}
    allowed = (logits[0].softmax(-1) >= 0.3 * logits[0].softmax(-1).max()).nonzero().flatten().tolist()
    for extra in ({}, {"top_k": 1000}):
        assert set(draw(logits, 300, temperature=1.0, min_p=0.3, **extra)) <= set(allowed)


@pytest.mark.parametrize("num_candidates", [4, 512])
@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_top_p_keeps_exactly_the_nucleus(
    logits: torch.Tensor, monkeypatch, num_candidates, temperature
) -> None:
    """Also where the nucleus is wider than the candidates that are looked at first."""
    monkeypatch.setattr(sampler, "NUM_CANDIDATES", num_candidates)
    probabilities, order = (logits[0] / temperature).softmax(-1).sort(descending=True)
    size = int((probabilities.cumsum(-1) < 0.7).sum()) + 1
    row = Row(SamplingSpec(temperature=temperature, top_p=0.7), [], 0)
    weights, candidates, is_enough = sampler._nucleus(
        logits / temperature - logits.max() / temperature, [row], VOCABULARY
    )
    assert is_enough == [True]
    assert int((weights > 0).sum()) == size
    assert candidates[0, :size].tolist() == order[:size].tolist()
    assert set(draw(logits, 400, temperature=temperature, top_p=0.7)) <= set(order[:size].tolist())


def test_a_narrow_look_draws_the_same_tokens_as_a_full_sort(logits: torch.Tensor, monkeypatch) -> None:
    wide = draw(logits, 200, temperature=3.0, top_p=0.9)
    monkeypatch.setattr(sampler, "NUM_CANDIDATES", 8)
    assert draw(logits, 200, temperature=3.0, top_p=0.9) == wide


def test_penalties_change_only_their_row() -> None:
    logits = torch.tensor([[2.0, 1.9, -1.0]]).repeat(4, 1)
    rows = [
        Row(SamplingSpec(), [0, 0], 1),
        Row(SamplingSpec(repetition_penalty=1.5), [0], 1),  # looks at the prompt too
        Row(SamplingSpec(presence_penalty=0.5), [0], 1),  # does not
        Row(SamplingSpec(frequency_penalty=0.06), [2, 0, 0], 1),  # twice 0.06
    ]
    assert [result.token for result in sample(logits, rows)] == [0, 1, 0, 1]
    assert logits[1].tolist() == pytest.approx([2.0, 1.9, -1.0])


def test_repetition_pushes_negative_scores_down() -> None:
    logits = torch.tensor([[-1.0, -1.2]])
    assert sample(logits, [Row(SamplingSpec(repetition_penalty=1.5), [0], 1)])[0].token == 1


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_broken_row_fails_alone(logits: torch.Tensor, value: float) -> None:
    broken = logits.clone()
    broken[0, 17] = value
    specs = [
        SamplingSpec(),
        SamplingSpec(temperature=1.0, seed=1),
        SamplingSpec(temperature=1.0, top_p=0.5, seed=1),
    ]
    for spec in specs:
        row = Row(spec, [1], 1)
        alone = sample(logits, [row])[0]
        results = sample(torch.cat([broken, logits]), [row, row])
        assert results[0].error
        assert results[1] == alone


def test_logprobs_are_those_of_the_model(logits: torch.Tensor) -> None:
    spec = SamplingSpec(temperature=2.0, seed=4, repetition_penalty=1.3, logprobs=3)
    result = sample(logits, [Row(spec, [1, 2], 2)])[0]
    reference = logits[0].log_softmax(-1)
    assert result.logprob == pytest.approx(float(reference[result.token]))
    assert [token for token, _ in result.top] == reference.topk(3).indices.tolist()
    assert [value for _, value in result.top] == pytest.approx(reference.topk(3).values.tolist())
