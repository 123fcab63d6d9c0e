"""How large a share of answers is wrong, told from some of them, with an interval that may be looked at at any time.

Pure. A usual 95 % interval holds for one look; whoever looks after every check and acts at the first bad one is wrong
far more often. The interval here is a confidence sequence: with the stated confidence the true share lies in it at all
times at once. It holds those shares against which the checks are no strong evidence. Against `p` speaks

    E(p) = integral of x^k (1-x)^(n-k) dBeta(1/2, 1/2)(x)  /  p^k (1-p)^(n-k)

for k wrong of n. Where p is true, E(p) is a martingale that starts at 1, so it ever reaches 1/a with a chance of at
most a (Ville 1939). For the mixture see Robbins, Ann. Math. Statist. 41 (1970), and Howard, Ramdas, McAuliffe and
Sekhon, Ann. Statist. 49 (2021). Which answers are checked may depend on earlier results, not on the result itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, lgamma, log

# One rule in a hundred that is just within its limit may ever be called past it.
CONFIDENCE = 0.99
_STEPS = 50  # halvings: far below what anybody reads


@dataclass(frozen=True, slots=True)
class Estimate:
    """`share` of `num` were wrong; the true share lies between `low` and `high`."""

    num: int
    num_wrong: int
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.num_wrong / self.num if self.num else 0.0


def estimate(num: int, num_wrong: int) -> Estimate:
    """What `num` checks tell, of which `num_wrong` said wrong."""
    assert 0 <= num_wrong <= num
    if num == 0:
        return Estimate(0, 0, 0.0, 1.0)
    share = num_wrong / num
    return Estimate(
        num,
        num_wrong,
        low=_edge(num, num_wrong, outside=0.0, inside=share),
        high=_edge(num, num_wrong, outside=1.0, inside=share),
    )


def is_past(limit: float, num: int, num_wrong: int) -> bool:
    """Whether the interval lies above `limit`: strong evidence that more than that are wrong."""
    return num_wrong > limit * num and not _is_possible(limit, num, num_wrong)


def _edge(num: int, num_wrong: int, outside: float, inside: float) -> float:
    """The share nearest to `outside` that the checks leave possible."""
    if _is_possible(outside, num, num_wrong):
        return outside
    for _ in range(_STEPS):
        middle = (outside + inside) / 2
        if _is_possible(middle, num, num_wrong):
            inside = middle
        else:
            outside = middle
    return outside


def _is_possible(share: float, num: int, num_wrong: int) -> bool:
    return evidence_against(share, num, num_wrong) < -log(1 - CONFIDENCE)


def evidence_against(share: float, num: int, num_wrong: int) -> float:
    """log E(share)."""
    num_right = num - num_wrong
    if (share <= 0 and num_wrong) or (share >= 1 and num_right):
        return inf
    wrong = num_wrong * log(share) if num_wrong else 0.0
    right = num_right * log(1 - share) if num_right else 0.0
    return _log_beta(num_wrong + 0.5, num_right + 0.5) - _log_beta(0.5, 0.5) - wrong - right


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
