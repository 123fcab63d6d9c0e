"""Why a request can never run.

The front checks what people send and refuses it politely; this is the core's own guard, because one impossible value
must not reach a forward that others share. Knows values only, no queues.
"""

from __future__ import annotations

import math

from inference.core.messages import Admit, SamplingSpec

# -100 bans a token and 100 forces it, whatever a model says; more would only lose precision.
MAX_BIAS = 100.0


def objection(request: Admit, max_context: int, vocab_size: int) -> str:
    """`code: sentence`, or empty when the request can run."""
    longest = max_context - min(request.max_tokens, 1)
    if not request.prompt_ids:
        return "invalid_request: the prompt is empty"
    if len(request.prompt_ids) > longest:
        return f"context_length_exceeded: {len(request.prompt_ids)} prompt tokens, at most {longest} fit"
    biased = [token for token, _ in request.sampling.logit_bias]
    for ids, what in ((request.prompt_ids, "prompt"), (request.stop_ids, "stop"), (biased, "biased")):
        if ids and not 0 <= min(ids) <= max(ids) < vocab_size:
            return f"invalid_request: a {what} token is not in the vocabulary"
    return _sampling_objection(request.sampling)


def _sampling_objection(spec: SamplingSpec) -> str:
    """Which value of a request's sampling is impossible; empty when all can be used."""
    within = {
        "temperature": 0.0 <= spec.temperature < math.inf,
        "top_p": 0.0 < spec.top_p <= 1.0,
        "top_k": spec.top_k >= 0,
        "min_p": 0.0 <= spec.min_p <= 1.0,
        "repetition_penalty": 0.0 < spec.repetition_penalty < math.inf,
        "presence_penalty": math.isfinite(spec.presence_penalty),
        "frequency_penalty": math.isfinite(spec.frequency_penalty),
        "logit_bias": all(-MAX_BIAS <= bias <= MAX_BIAS for _, bias in spec.logit_bias),
        "min_tokens": spec.min_tokens >= 0,
    }
    wrong = [name for name, is_possible in within.items() if not is_possible]
    return f"invalid_request: {wrong[0]} has an impossible value" if wrong else ""
