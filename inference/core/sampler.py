"""The next token of every row.

Each row has its own settings and a batch may mix all of them. The random number of a row depends on (seed,
position) only, so a seeded answer is the same in any company. The order is that of transformers' `generate()`:
logit_bias, penalties, the mask of ends before min_tokens and that of the grammar, temperature, top_k, top_p, min_p,
then the draw. Knows logits and token ids; no sequences and no grammars.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from inference.core.allowed import WORD_BITS, Allowed
from inference.core.messages import SamplingSpec
from inference.core.outcome import Outcome

# Below this a temperature means "take the best token".
GREEDY_TEMPERATURE = 1e-5
# Sorting a whole vocabulary costs more than a decode step; nearly every nucleus lies within so many candidates.
NUM_CANDIDATES = 512
# Scores among which the place of the largest is looked for.
PEAK_PART = 128
BROKEN = Outcome(error="the model's output holds NaN or infinity")


@dataclass(frozen=True, slots=True)
class Row:
    """One row's settings and history: prompt and output so far. `stop_ids` end its answer; None allows every token."""

    spec: SamplingSpec
    token_ids: Sequence[int]
    num_prompt: int
    stop_ids: Sequence[int] = ()
    allowed: Allowed | None = None

    @property
    def position(self) -> int:
        """Of the token to sample."""
        return len(self.token_ids)

    @property
    def is_greedy(self) -> bool:
        return self.spec.temperature < GREEDY_TEMPERATURE

    @property
    def must_go_on(self) -> bool:
        """Whether the answer is still too short to end; one that its grammar lets no further is not."""
        if self.allowed is not None and self.allowed.is_complete:
            return False
        return len(self.token_ids) - self.num_prompt < self.spec.min_tokens

    @property
    def is_adjusted(self) -> bool:
        spec = self.spec
        penalties = (spec.repetition_penalty - 1.0, spec.presence_penalty, spec.frequency_penalty)
        is_held = self.allowed is not None or (self.must_go_on and bool(self.stop_ids))
        return any(penalties) or bool(spec.logit_bias) or is_held


def sample(logits: torch.Tensor, rows: Sequence[Row]) -> list[Outcome]:
    """One outcome per row of `logits` (num_rows, vocabulary) fp32, which is left unchanged."""
    best, tokens = peaks(logits)
    is_sound = torch.isfinite(best).tolist()  # NaN wins a maximum
    adjusted = _adjust(logits, rows, is_sound)
    if adjusted is not logits:
        best, tokens = peaks(adjusted)
    chosen: list[int] = tokens.tolist()
    is_possible = torch.isfinite(best).tolist()
    drawn = [i for i, row in enumerate(rows) if is_possible[i] and not row.is_greedy]
    if drawn:
        for i, token in zip(drawn, _draw(adjusted[drawn], [rows[i] for i in drawn]), strict=True):
            chosen[i] = token
    outcomes = []
    for i, row in enumerate(rows):
        if not is_sound[i] or chosen[i] < 0:
            outcomes.append(BROKEN)
        elif not is_possible[i]:
            outcomes.append(Outcome(error="nothing may be sampled: every token is masked"))
        elif row.spec.logprobs >= 0:
            outcomes.append(_with_logprobs(logits[i], chosen[i], row.spec.logprobs))
        else:
            outcomes.append(Outcome(chosen[i]))
    return outcomes


def are_sound(logits: torch.Tensor) -> list[bool]:
    """Per row of (num_rows, vocabulary): whether it holds neither NaN nor infinity. NaN wins a maximum."""
    return torch.isfinite(logits.amax(-1)).tolist()


def peaks(scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest of each row and the first place of it, as `max(-1)` finds them.

    Looks for the place in one part only: with 49,152 scores in 16 rows that takes a sixth of the time.
    """
    whole = scores.shape[-1] // PEAK_PART * PEAK_PART
    if whole == 0:
        best, tokens = scores.max(-1)
        return best, tokens
    parts = scores[:, :whole].unflatten(-1, (-1, PEAK_PART))
    best, part = parts.amax(-1).max(-1)
    within = parts[torch.arange(len(scores), device=scores.device), part].argmax(-1)
    tokens = part * PEAK_PART + within
    if whole < scores.shape[-1]:
        last, place = scores[:, whole:].max(-1)
        is_last = ~best.isnan() & ((last > best) | last.isnan())
        best, tokens = torch.where(is_last, last, best), torch.where(is_last, whole + place, tokens)
    return best, tokens


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) that depends on nothing else."""
    payload = seed.to_bytes(16, "little", signed=True) + position.to_bytes(8, "little")
    digest = hashlib.blake2b(payload, digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 11) / (1 << 53)


def _adjust(logits: torch.Tensor, rows: Sequence[Row], is_sound: list[bool]) -> torch.Tensor:
    """The scores after bias, penalties and masks; the logits themselves where no row has any."""
    wanted = [i for i, row in enumerate(rows) if is_sound[i] and row.is_adjusted]
    if not wanted:
        return logits
    adjusted = logits.clone()
    for i in wanted:
        _bias(adjusted[i], rows[i].spec)
        _penalise(adjusted[i], rows[i])
        if rows[i].must_go_on:
            adjusted[i][list(rows[i].stop_ids)] = -math.inf
    _forbid(adjusted, {i: row.allowed for i in wanted if (row := rows[i]).allowed is not None})
    return adjusted


def _forbid(scores: torch.Tensor, allowed: dict[int, Allowed]) -> None:
    """Mask what the rows' grammars do not allow, and what is beyond the vocabulary that they know."""
    if not allowed:
        return
    words = torch.from_numpy(np.stack([one.words for one in allowed.values()])).to(scores.device)
    bits = (words[:, :, None] >> torch.arange(WORD_BITS, dtype=torch.int32, device=scores.device)) & 1
    is_allowed = torch.zeros((len(allowed), scores.shape[-1]), dtype=torch.bool, device=scores.device)
    known = bits.flatten(1)[:, : scores.shape[-1]]
    is_allowed[:, : known.shape[-1]] = known.bool()
    rows = list(allowed)
    scores[rows] = scores[rows].masked_fill(~is_allowed, -math.inf)


def _bias(scores: torch.Tensor, spec: SamplingSpec) -> None:
    if spec.logit_bias:
        ids = torch.tensor([token for token, _ in spec.logit_bias], device=scores.device)
        biases = torch.tensor([bias for _, bias in spec.logit_bias], dtype=scores.dtype, device=scores.device)
        scores.index_add_(0, ids, biases)


def _penalise(scores: torch.Tensor, row: Row) -> None:
    """Repetition looks at prompt and output, presence and frequency at the output only."""
    spec = row.spec
    if spec.repetition_penalty != 1.0:
        seen = torch.tensor(row.token_ids, dtype=torch.long, device=scores.device)
        before = scores[seen]
        scores[seen] = torch.where(
            before > 0, before / spec.repetition_penalty, before * spec.repetition_penalty
        )
    if spec.presence_penalty or spec.frequency_penalty:
        output = torch.tensor(row.token_ids[row.num_prompt :], dtype=torch.long, device=scores.device)
        scores[output] = scores[output] - spec.presence_penalty
        scores.index_add_(0, output, torch.full_like(output, -spec.frequency_penalty, dtype=scores.dtype))


def _draw(logits: torch.Tensor, rows: list[Row]) -> list[int]:
    """One token per row by inverting its cumulative distribution at the row's random number; -1 where it has none."""
    temperatures = _column([row.spec.temperature for row in rows], logits)
    scaled = logits / temperatures
    scaled = scaled - scaled.max(-1, keepdim=True).values
    tokens = [-1] * len(rows)
    whole = [i for i, row in enumerate(rows) if row.spec.top_k <= 0 and row.spec.top_p >= 1.0]
    cut = [i for i in range(len(rows)) if i not in set(whole)]
    if whole:
        weights = scaled[whole].double().exp()
        weights[weights < _column([rows[i].spec.min_p for i in whole], weights)] = 0
        for i, rank in zip(whole, _invert(weights, [rows[i] for i in whole]), strict=True):
            tokens[i] = rank
    if cut:
        for i, token in zip(cut, _draw_cut(scaled[cut], [rows[i] for i in cut]), strict=True):
            tokens[i] = token
    return tokens


def _draw_cut(scaled: torch.Tensor, rows: list[Row]) -> list[int]:
    """Rows with top_k or top_p, over their best candidates in falling order.

    Which of them need a look at the whole vocabulary is decided row by row: company changes no row's arithmetic.
    """
    tokens, is_enough = _draw_among(scaled, rows, min(NUM_CANDIDATES, scaled.shape[-1]))
    wide = [i for i, enough in enumerate(is_enough) if not enough]
    if wide:
        further, _ = _draw_among(scaled[wide], [rows[i] for i in wide], scaled.shape[-1])
        for i, token in zip(wide, further, strict=True):
            tokens[i] = token
    return tokens


def _draw_among(scaled: torch.Tensor, rows: list[Row], num: int) -> tuple[list[int], list[bool]]:
    weights, candidates, is_enough = _nucleus(scaled, rows, num)
    ranks = _invert(weights, rows)
    return [-1 if rank < 0 else int(candidates[i, rank]) for i, rank in enumerate(ranks)], is_enough


def _nucleus(
    scaled: torch.Tensor, rows: list[Row], num: int
) -> tuple[torch.Tensor, torch.Tensor, list[bool]]:
    """Weights of the `num` best candidates with everything outside top_k, top_p and min_p set to 0.

    Also says for each row whether the nucleus surely ended within the candidates.
    """
    values, candidates = _best(scaled, num)
    weights = values.double().exp()
    top_k = [row.spec.top_k if row.spec.top_k > 0 else scaled.shape[-1] for row in rows]
    ranks = torch.arange(num, device=scaled.device)
    weights[ranks >= _column(top_k, weights)] = 0
    within_k = weights.sum(-1, keepdim=True)
    totals = torch.where(
        _column(top_k, weights) <= num, within_k, scaled.double().exp().sum(-1, keepdim=True)
    )
    before = (weights.cumsum(-1) - weights) / totals  # probability of everything better
    top_p = _column([row.spec.top_p for row in rows], weights)
    outside = before >= top_p
    outside[:, 0] = False
    is_enough = [k <= num or bool(out) for k, out in zip(top_k, outside[:, -1].tolist(), strict=True)]
    weights[outside | (weights < _column([row.spec.min_p for row in rows], weights))] = 0
    return weights, candidates, is_enough


def _best(scaled: torch.Tensor, num: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The `num` best in falling order; of equals (common in half precision) the lowest id first, as greedy takes it."""
    if num == scaled.shape[-1]:
        values, order = scaled.sort(dim=-1, descending=True, stable=True)
        return values, order
    candidates = scaled.topk(num, dim=-1).indices.sort(-1).values
    values, order = scaled.gather(-1, candidates).sort(dim=-1, descending=True, stable=True)
    return values, candidates.gather(-1, order)


def _invert(weights: torch.Tensor, rows: list[Row]) -> list[int]:
    """Index of each row's drawn weight; -1 where the weights are not usable. The best weight is 1, so some are."""
    cumulative = weights.cumsum(-1)
    totals = cumulative[:, -1:]
    targets = _column([uniform(row.spec.seed, row.position) for row in rows], weights) * totals
    # Rounded up to the total, a target would lie behind the last weight that is not 0.
    targets = torch.minimum(targets, torch.nextafter(totals, torch.zeros_like(totals)))
    drawn = torch.searchsorted(cumulative, targets, right=True).clamp_(max=weights.shape[-1] - 1)
    return [
        index if math.isfinite(total) and total > 0 else -1
        for index, total in zip(drawn[:, 0].tolist(), totals[:, 0].tolist(), strict=True)
    ]


def _column(values: Sequence[float], like: torch.Tensor) -> torch.Tensor:
    return torch.tensor(values, dtype=like.dtype, device=like.device)[:, None]


def _with_logprobs(logits: torch.Tensor, token: int, num_top: int) -> Outcome:
    """Log-probabilities of the model itself, before penalties and temperature."""
    logprobs = logits.log_softmax(-1)
    values, ids = logprobs.topk(min(num_top, len(logprobs)))
    top = tuple(zip(ids.tolist(), values.tolist(), strict=True))
    return Outcome(token, float(logprobs[token]), top)
