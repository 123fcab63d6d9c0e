// Answers that are being made: applies the server's frames in order and says when a snapshot is needed.
// Pure: it changes what it keeps and knows neither line nor page.

import { LIVE_STATES } from "./tree.js";

export class LiveAnswers {
  constructor() {
    this.byGeneration = new Map();
  }

  /** Starts to follow `generation`, which fills the message `answer` of `conversation`. */
  track(generation, answer, conversation) {
    if (!this.byGeneration.has(generation)) {
      this.byGeneration.set(generation, { generation, answer, conversation, seq: 0, text: "", state: "queued", position: null, prefill: null, done: null });
    }
    return this.byGeneration.get(generation);
  }

  get(generation) {
    return this.byGeneration.get(generation);
  }

  forget(generation) {
    this.byGeneration.delete(generation);
  }

  running() {
    return [...this.byGeneration.values()].filter((live) => !live.done);
  }

  /**
   * Applies a queued, prefill, delta, snapshot or done frame. Returns { live, attachAfter }: the answer it changed
   * (undefined when nothing changed), and the number to attach after when something is missing.
   */
  apply(frame) {
    const live = this.byGeneration.get(frame.generation);
    if (!live) return {};
    return this[frame.type](live, frame);
  }

  queued(live, frame) {
    live.position = frame.position;
    return { live };
  }

  prefill(live, frame) {
    live.position = null;
    live.prefill = { done: frame.done, total: frame.total };
    return { live };
  }

  /** Offsets say where a text belongs: what is there already is left out, a hole asks for a snapshot. */
  delta(live, frame) {
    const known = live.text.length - frame.offset;
    if (known < 0) return { attachAfter: 0 };
    if (known >= frame.text.length) return {};
    live.text += frame.text.slice(known);
    live.seq = frame.seq;
    live.state = "running";
    live.position = live.prefill = null;
    return { live };
  }

  /** A snapshot of a running answer may be older than what is shown; then the deltas after it catch up. */
  snapshot(live, frame) {
    const isLive = LIVE_STATES.has(frame.state);
    Object.assign(live, { state: frame.state, answer: frame.answer });
    if (isLive && live.text.startsWith(frame.text)) return { live };
    Object.assign(live, { text: frame.text, seq: frame.seq });
    if (frame.text) live.position = live.prefill = null;
    return { live };
  }

  done(live, frame) {
    live.state = frame.state;
    live.done = frame;
    if (frame.length === live.text.length || live.isResyncing) return { live };
    live.isResyncing = true;
    return { live, attachAfter: 0 };
  }
}
