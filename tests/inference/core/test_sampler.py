from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest
import torch
from msgspec.structs import replace

from inference.core import sampler
from inference.core.messages import SamplingSpec
from inference.core.sampler import Row, peaks, sample, uniform

VOCABULARY = 2000


@pytest.fixture
def logits() -> torch.Tensor:
    return torch.randn(1, VOCABULARY, generator=torch.Generator().manual_seed(5)) * 3


def draw(logits: torch.Tensor, num: int, **spec: float) -> Counter[int]:
    rows = [Row(SamplingSpec(seed=seed, **spec), [1, 2], 2) for seed in range(num)]
    return Counter(result.token for result in sample(logits.expand(num, -1), rows))


@pytest.mark.parametrize("num_scores", [1, 127, 128, 300, 4096])
@pytest.mark.parametrize("step", [1.0, 0.01])
def test_peaks_are_those_of_max(num_scores: int, step: float) -> None:
    scores = torch.randn(60, num_scores, generator=torch.Generator().manual_seed(3))
    scores = (scores / step).round() * step  # of equals the first counts
    scores[5, num_scores // 2] = scores[7, -1] = scores[8, 0] = scores[8, -1] = torch.nan
    scores[9] = -math.inf
    scores[10, -1] = math.inf
    best, tokens = scores.max(-1)
    found = peaks(scores)
    assert torch.equal(found[1], tokens)
    torch.testing.assert_close(found[0], best, rtol=0, atol=0, equal_nan=True)


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


def test_logprobs_are_those_of_the_model_in_any_mixed_batch(logits: torch.Tensor) -> None:
    """Whatever is done to the scores afterwards, for greedy and sampled rows, beside rows that asked for none."""
    specs = [
        SamplingSpec(temperature=2.0, seed=4, repetition_penalty=1.3, logprobs=3),
        SamplingSpec(logit_bias=[(7, 100.0)], logprobs=3),
        SamplingSpec(temperature=1.0, seed=1),
        SamplingSpec(logprobs=0),
        SamplingSpec(temperature=1.5, seed=2, top_k=4, min_tokens=5, logprobs=3),
    ]
    rows = [Row(spec, [1, 2], 2, stop_ids=[9]) for spec in specs]
    reference = logits[0].log_softmax(-1)
    for spec, outcome in zip(specs, sample(logits.expand(5, -1), rows), strict=True):
        assert outcome.token is not None
        asked = max(spec.logprobs, 0)
        expected = float(reference[outcome.token]) if spec.logprobs >= 0 else 0.0
        assert outcome.logprob == pytest.approx(expected)
        assert [token for token, _ in outcome.top] == reference.topk(asked).indices.tolist()
        assert [value for _, value in outcome.top] == pytest.approx(reference.topk(asked).values.tolist())


def test_an_answer_that_is_too_short_cannot_end(logits: torch.Tensor) -> None:
    best, second = logits[0].topk(2).indices.tolist()
    for spec in (SamplingSpec(min_tokens=2), SamplingSpec(min_tokens=2, temperature=1.0, top_k=1)):
        tokens = [
            sample(logits, [Row(spec, [1] * (3 + num), 3, stop_ids=[best])])[0].token for num in range(4)
        ]
        assert tokens == [second, second, best, best]


def test_a_bias_bans_and_forces(logits: torch.Tensor) -> None:
    best, second = logits[0].topk(2).indices.tolist()
    for settings in ({}, {"temperature": 1.0, "top_k": 1}, {"temperature": 2.0, "seed": 3}):
        banned, forced, free = sample(
            logits.expand(3, -1),
            [
                Row(SamplingSpec(logit_bias=[(best, -100.0)], **settings), [], 0),
                Row(SamplingSpec(logit_bias=[(11, 100.0)], **settings), [], 0),
                Row(SamplingSpec(**settings), [], 0),
            ],
        )
        assert banned.token != best
        assert forced.token == 11
        assert free == sample(logits, [Row(SamplingSpec(**settings), [], 0)])[0]
    assert sample(logits, [Row(SamplingSpec(logit_bias=[(best, -100.0)]), [], 0)])[0].token == second


def test_a_row_whose_tokens_are_all_masked_fails_alone() -> None:
    logits = torch.tensor([[1.0, 2.0]]).repeat(2, 1)
    for temperature in (0.0, 1.0):
        spec = SamplingSpec(temperature=temperature, min_tokens=1)
        masked, free = sample(logits, [Row(spec, [], 0, stop_ids=[0, 1]), Row(spec, [], 0, stop_ids=[0])])
        assert masked.token is None and masked.error
        assert free.token == 1


SETTINGS = {
    "logit_bias": [(3, 2.5), (8, -4.0)],
    "repetition_penalty": 1.4,
    "min_tokens": 9,
    "temperature": 0.7,
    "top_k": 12,
    "top_p": 0.8,
    "min_p": 0.08,
}


def processed(logits: torch.Tensor, spec: SamplingSpec, row: Row) -> torch.Tensor:
    """Probabilities as transformers' own processors leave them, in the order in which generate() calls them."""
    from transformers import generation as reference

    vocabulary = logits.shape[-1]
    processors = [
        reference.SequenceBiasLogitsProcessor({(token,): bias for token, bias in spec.logit_bias})
        if spec.logit_bias
        else None,
        reference.RepetitionPenaltyLogitsProcessor(spec.repetition_penalty),
        reference.MinNewTokensLengthLogitsProcessor(row.num_prompt, spec.min_tokens, list(row.stop_ids))
        if spec.min_tokens
        else None,
        reference.TemperatureLogitsWarper(spec.temperature),
        reference.TopKLogitsWarper(spec.top_k or vocabulary),
        reference.TopPLogitsWarper(spec.top_p),
        reference.MinPLogitsWarper(spec.min_p) if spec.min_p else None,
    ]
    scores, ids = logits[None].clone(), torch.tensor([list(row.token_ids)])
    for processor in processors:
        scores = processor(ids, scores) if processor is not None else scores
    return scores[0].double().softmax(-1)


@pytest.mark.parametrize("num_on", range(len(SETTINGS) + 1))
def test_every_mix_of_settings_draws_what_transformers_processors_would(num_on: int) -> None:
    """Inverting the same distribution at the same random numbers gives the same tokens: a wrong order does not."""
    vocabulary = 60
    generator = torch.Generator().manual_seed(num_on)
    for names in itertools.combinations(SETTINGS, num_on):
        logits = torch.randn(vocabulary, generator=generator) * 2
        spec = SamplingSpec(**({"temperature": 1.0} | {name: SETTINGS[name] for name in names}))  # type: ignore[arg-type]
        stop_ids = [int(logits.argmax()), 4]
        rows = [Row(replace(spec, seed=seed), [5, 3, 20, 3, 11], 2, stop_ids) for seed in range(40)]
        probabilities = processed(logits, spec, rows[0])
        outcomes = sample(logits.expand(40, -1), rows)
        assert {int(outcome.token) for outcome in outcomes} <= set(probabilities.nonzero().flatten().tolist())
        is_cut = spec.top_k > 0 or spec.top_p < 1.0
        order = (
            probabilities.sort(descending=True, stable=True).indices if is_cut else torch.arange(vocabulary)
        )
        bounds = probabilities[order].cumsum(-1)
        for row, outcome in zip(rows, outcomes, strict=True):
            rank = int(torch.searchsorted(bounds, uniform(row.spec.seed, row.position), right=True))
            assert outcome.token == int(order[min(rank, vocabulary - 1)]), names


def test_presence_and_frequency_come_after_repetition_and_before_temperature() -> None:
    """transformers has no such processors; the order is that of the page that documents them."""
    logits = torch.tensor([[3.0, 1.2]])
    spec = SamplingSpec(repetition_penalty=1.5, presence_penalty=0.5, frequency_penalty=0.2)
    # token 0: 3.0 / 1.5 - 0.5 - 2 * 0.2 = 1.1 < 1.2
    assert sample(logits, [Row(spec, [0, 0], 0)])[0].token == 1
    # the other way round: (3.0 - 0.9) / 1.5 = 1.4
    rows = [Row(replace(spec, temperature=0.5, seed=seed), [0, 0], 0) for seed in range(3000)]
    counts = Counter(outcome.token for outcome in sample(logits.expand(3000, -1), rows))
    assert counts[1] / 3000 == pytest.approx(1 / (1 + math.exp(-0.2)), abs=0.03)


def test_of_equal_scores_the_lowest_id_is_best_in_any_company() -> None:
    """Half precision makes ties: top_k 1 must then still be greedy, whatever else is in the batch."""
    logits = torch.zeros(1, 700)
    logits[0, [650, 300, 301, 20]] = 5.0
    only_best = Row(SamplingSpec(temperature=1.0, top_k=1, seed=3), [], 0)
    others = [Row(SamplingSpec(temperature=1.0, top_k=k, top_p=0.9, seed=3), [], 0) for k in (2, 600, 0)]
    assert sample(logits, [only_best])[0].token == sample(logits, [Row(SamplingSpec(), [], 0)])[0].token == 20
    alone = [sample(logits, [row])[0] for row in others]
    assert sample(logits.expand(4, -1), [*others, only_best]) == [*alone, sample(logits, [only_best])[0]]
