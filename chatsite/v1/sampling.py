"""How a request wants its tokens chosen, from OpenAI's fields (and vLLM's further ones) to the engine's.

Knows ranges and names of fields. What the model does not have, such as a token id, the engine refuses.
"""

from __future__ import annotations

from dataclasses import dataclass

from chatsite.v1.errors import invalid
from chatsite.v1.schema import Asked
from inference.types import Grammar, Sampling

MAX_STOPS = 4
MAX_STOP_CHARS = 64
MAX_ID_DIGITS = 9
MAX_BIAS = 100
# The engine's own limits: what it would refuse is refused here, where the field can be named.
MAX_TOP_K = 1_000_000
MAX_MIN_TOKENS = 10_000_000


@dataclass(frozen=True, slots=True)
class Range:
    low: float
    high: float
    excludes_low: bool = False

    def check(self, name: str, value: float | None) -> None:
        if value is None:
            return
        if not self.low <= value <= self.high or (self.excludes_low and value == self.low):
            edge = "above" if self.excludes_low else "at least"
            raise invalid(
                name, f"'{name}' must be {edge} {self.low:g} and at most {self.high:g}.", "out_of_range"
            )


RANGES = {
    "temperature": Range(0, 2),
    "top_p": Range(0, 1, excludes_low=True),
    "top_k": Range(0, MAX_TOP_K),
    "min_p": Range(0, 1),
    "repetition_penalty": Range(0, 10, excludes_low=True),
    "presence_penalty": Range(-2, 2),
    "frequency_penalty": Range(-2, 2),
    "seed": Range(-(2**63), 2**63 - 1),
    "min_tokens": Range(0, MAX_MIN_TOKENS),
}
# The engine counts in single precision, in which what is nearer to nothing is nothing, and not allowed.
LEAST_ABOVE_ZERO = 1e-6
LIMIT = Range(1, float("inf"))
TOP_LOGPROBS = Range(0, 20)
BIAS = Range(-MAX_BIAS, MAX_BIAS)


def sampling_of(
    request: Asked,
    max_output_tokens: int,
    *,
    limits: dict[str, int | None],
    num_logprobs: int | None,
    grammar: Grammar | None = None,
) -> Sampling:
    """The sampling that was asked for. Raises ApiError that names the field.

    `limits` are the fields that limit the answer, of which the first that is given counts; what the engine doesn't
    give is capped.
    """
    for name, allowed in RANGES.items():
        allowed.check(name, getattr(request, name))
    for name, value in limits.items():
        LIMIT.check(name, value)
    most = next((value for value in limits.values() if value is not None), None)
    longest = max_output_tokens if most is None else min(most, max_output_tokens)
    shortest = min(request.min_tokens or 0, max_output_tokens)
    if shortest > longest:
        raise invalid("min_tokens", f"'min_tokens' is above the limit of {longest} tokens.", "out_of_range")
    return Sampling(
        temperature=request.temperature,
        top_p=_above_zero(request.top_p),
        top_k=request.top_k,
        min_p=request.min_p,
        repetition_penalty=_above_zero(request.repetition_penalty),
        presence_penalty=request.presence_penalty,
        frequency_penalty=request.frequency_penalty,
        # The engine's seeds are unsigned; two's complement keeps every seed distinct.
        seed=None if request.seed is None else request.seed % 2**64,
        stop=_stops(request.stop),
        max_tokens=None if most is None else longest,
        logprobs=num_logprobs,
        min_tokens=shortest or None,
        logit_bias=_biases(request.logit_bias or {}),
        stop_ids=tuple(request.stop_token_ids or ()),
        grammar=grammar,
        speculate=request.speculate,
    )


def _above_zero(value: float | None) -> float | None:
    return None if value is None else max(value, LEAST_ABOVE_ZERO)


def _stops(stop: str | list[str] | None) -> tuple[str, ...]:
    stops = (stop,) if isinstance(stop, str) else tuple(stop or ())
    if len(stops) > MAX_STOPS:
        raise invalid("stop", f"At most {MAX_STOPS} stop strings are allowed.", "out_of_range")
    if any(len(one) > MAX_STOP_CHARS for one in stops):
        raise invalid("stop", f"A stop string may have at most {MAX_STOP_CHARS} characters.", "out_of_range")
    return tuple(one for one in stops if one)  # an empty string would stop everything


def _biases(given: dict[str, float]) -> tuple[tuple[int, float], ...]:
    biases: dict[int, float] = {}
    for token, bias in given.items():
        if not (token.isascii() and token.isdigit() and len(token) <= MAX_ID_DIGITS):
            raise invalid("logit_bias", f"'{token[:40]}' is no token id.")
        BIAS.check("logit_bias", bias)
        biases[int(token)] = bias
    return tuple(sorted(biases.items()))
