"""How good scores are, and what makes 0.5 mean "as likely as not".

Knows scores and labels only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one set of pairs. Shares are of its paraphrases (served) and of its traps (wrong)."""

    num_same: int
    num_traps: int
    auc: float  # the chance that a paraphrase scores above a trap
    served_at_2: float  # paraphrases served where at most 2 % of the traps are
    served_at_5: float
    wrong_at_half: float  # traps scored above 0.5
    served_at_half: float
    calibration: float  # mean distance of score and truth over ten bins of scores

    @classmethod
    def of(cls, scores: Sequence[float] | np.ndarray, same: Sequence[bool] | np.ndarray) -> Figures:
        values, labels = np.asarray(scores, dtype=np.float64), np.asarray(same, dtype=bool)
        right, wrong = values[labels], values[~labels]
        return cls(
            num_same=len(right),
            num_traps=len(wrong),
            auc=auc(right, wrong),
            served_at_2=served(right, wrong, 0.02),
            served_at_5=served(right, wrong, 0.05),
            wrong_at_half=float((wrong > 0.5).mean()),
            served_at_half=float((right > 0.5).mean()),
            calibration=_calibration(values, labels),
        )


def auc(right: np.ndarray, wrong: np.ndarray) -> float:
    above = (right[:, None] > wrong[None, :]).mean()
    return float(above + (right[:, None] == wrong[None, :]).mean() / 2)


def served(right: np.ndarray, wrong: np.ndarray, share: float) -> float:
    """Above the lowest threshold that lets at most `share` of the traps through."""
    allowed = int(share * len(wrong))
    threshold = np.sort(wrong)[::-1][allowed] if allowed < len(wrong) else -np.inf
    return float((right > threshold).mean())


def fit_scale(logits: np.ndarray, same: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Factor and offset of the logits under which they are the likeliest log-odds (Platt 1999)."""
    values, labels, shares = (torch.as_tensor(part, dtype=torch.float64) for part in (logits, same, weights))
    fitted = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([fitted], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        scaled = values * fitted[0] + fitted[1]
        total = torch.nn.functional.binary_cross_entropy_with_logits(
            scaled, labels, weight=shares, reduction="sum"
        )
        total = total + 1e-3 * (fitted[0] - 1).square()  # separable scores would want an endless factor
        total.backward()
        return total

    optimizer.step(loss)
    factor, offset = fitted.detach().tolist()
    return max(factor, 0.05), offset


def _calibration(scores: np.ndarray, same: np.ndarray) -> float:
    bins = np.minimum((scores * 10).astype(int), 9)
    gaps = [
        (bins == number).sum() * abs(scores[bins == number].mean() - same[bins == number].mean())
        for number in set(bins.tolist())
    ]
    return float(sum(gaps) / len(scores))
