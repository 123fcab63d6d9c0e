// What is known of how an answer was made, in one shape, whether a `done` frame or the stored row told it.

/** From a `done` frame. */
export function fromFrame(frame) {
  return { ...facts(frame), id: frame.generation };
}

/** From the `generation` of a stored message; null stays null. */
export function fromRow(row) {
  return row && { ...facts(row), id: row.id };
}

function facts(source) {
  return {
    state: source.state,
    origin: source.origin ?? "model",
    model: source.model ?? "",
    finish_reason: source.finish_reason ?? "",
    cache_age_s: source.cache_age_s ?? null,
    cache_is_stale: source.cache_is_stale ?? false,
    generated_tokens: source.generated_tokens ?? 0,
    prompt_tokens: source.prompt_tokens ?? 0,
    reused_tokens: source.reused_tokens ?? 0,
    trimmed_messages: source.trimmed_messages ?? 0,
    ttft_ms: source.ttft_ms ?? 0,
    queue_ms: source.queue_ms ?? 0,
    prefill_ms: source.prefill_ms ?? 0,
    decode_ms: source.decode_ms ?? 0,
    delivery_ms: source.delivery_ms ?? 0,
    error_code: source.error_code ?? "",
    is_retryable: source.is_retryable ?? true,
  };
}

/** Tokens per second while decoding, or null when too little was measured to say. */
export function speed(generation) {
  if (generation.origin !== "model" || generation.generated_tokens < 2 || generation.decode_ms <= 0) return null;
  return (generation.generated_tokens * 1000) / generation.decode_ms;
}
