"""Which sampling values are allowed, and what stands in for those that were not given.

Knows ranges and the model's defaults; does not know how sampling works.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from inference.core.admission import MAX_BIAS
from inference.core.messages import SamplingSpec
from inference.errors import InvalidRequest
from inference.types import Sampling

MAX_STOP_STRINGS = 16
MAX_STOP_CHARACTERS = 512
MAX_STOP_IDS = 64
MAX_BIASES = 1024
MAX_SEED = 2**63 - 1

# name: (lowest, highest, is the lowest allowed?)
RANGES: dict[str, tuple[float, float, bool]] = {
    "temperature": (0.0, 5.0, True),
    "top_p": (0.0, 1.0, False),
    "top_k": (0, 1_000_000, True),
    "min_p": (0.0, 1.0, True),
    "repetition_penalty": (0.0, 10.0, False),
    "presence_penalty": (-2.0, 2.0, True),
    "frequency_penalty": (-2.0, 2.0, True),
    "max_tokens": (1, 10_000_000, True),
    "min_tokens": (0, 10_000_000, True),
    "logprobs": (0, 20, True),
}


@dataclass(frozen=True, slots=True)
class SamplingDefaults:
    """What the model's generation_config.json asks for."""

    temperature: float = 0.7
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0


def resolve(sampling: Sampling, defaults: SamplingDefaults, knows: Callable[[int], bool]) -> SamplingSpec:
    """Complete sampling for the core. Raises InvalidRequest for the first value that cannot be used.

    `knows` says whether the vocabulary has an id.
    """
    _check_numbers(sampling)
    _check_stops(sampling, knows)
    _check_bias(sampling, knows)

    def value(name: str) -> float:
        given = getattr(sampling, name)
        return getattr(defaults, name) if given is None else given  # type: ignore[no-any-return]

    return SamplingSpec(
        temperature=value("temperature"),
        top_p=value("top_p"),
        top_k=int(value("top_k")),
        min_p=value("min_p"),
        repetition_penalty=value("repetition_penalty"),
        presence_penalty=sampling.presence_penalty or 0.0,
        frequency_penalty=sampling.frequency_penalty or 0.0,
        seed=secrets.randbelow(MAX_SEED) if sampling.seed is None else sampling.seed & MAX_SEED,
        logprobs=-1 if sampling.logprobs is None else sampling.logprobs,
        min_tokens=sampling.min_tokens or 0,
        logit_bias=list(sampling.logit_bias),
        grammar=sampling.grammar,
        speculate=sampling.speculate,
    )


def _check_numbers(sampling: Sampling) -> None:
    for name, (low, high, is_low_allowed) in RANGES.items():
        value = getattr(sampling, name)
        if value is None:
            continue
        is_inside = math.isfinite(value) and low <= value <= high and (is_low_allowed or value != low)
        if not is_inside:
            bracket = "[" if is_low_allowed else "("
            raise InvalidRequest(f"{name} must be a number in {bracket}{low:g}, {high:g}], not {value!r}")
    if (sampling.min_tokens or 0) > (sampling.max_tokens or math.inf):
        raise InvalidRequest(f"min_tokens {sampling.min_tokens} is above max_tokens {sampling.max_tokens}")


def _check_stops(sampling: Sampling, knows: Callable[[int], bool]) -> None:
    if len(sampling.stop) > MAX_STOP_STRINGS:
        raise InvalidRequest(f"at most {MAX_STOP_STRINGS} stop strings, not {len(sampling.stop)}")
    for stop in sampling.stop:
        if not 1 <= len(stop) <= MAX_STOP_CHARACTERS:
            raise InvalidRequest(f"a stop string has 1 to {MAX_STOP_CHARACTERS} characters, not {len(stop)}")
    if len(sampling.stop_ids) > MAX_STOP_IDS:
        raise InvalidRequest(f"at most {MAX_STOP_IDS} stop ids, not {len(sampling.stop_ids)}")
    _check_ids("stop_ids", sampling.stop_ids, knows)


def _check_bias(sampling: Sampling, knows: Callable[[int], bool]) -> None:
    if len(sampling.logit_bias) > MAX_BIASES:
        raise InvalidRequest(f"logit_bias has at most {MAX_BIASES} entries, not {len(sampling.logit_bias)}")
    _check_ids("logit_bias", [token for token, _ in sampling.logit_bias], knows)
    for token, bias in sampling.logit_bias:
        if not -MAX_BIAS <= bias <= MAX_BIAS:
            raise InvalidRequest(
                f"a bias is a number in [{-MAX_BIAS:g}, {MAX_BIAS:g}]; token {token} has {bias!r}"
            )


def _check_ids(name: str, ids: Iterable[int], knows: Callable[[int], bool]) -> None:
    for token in ids:
        if token < 0 or not knows(token):
            raise InvalidRequest(f"{name} names the token {token}, which the vocabulary does not have")
