// Answers that are being made: applies the server's frames in order and says when a snapshot is needed.
// Pure: it changes what it keeps and knows neither socket nor page.

import { LIVE_STATES } from "./thread.js";

export class LiveAnswers {
  constructor() {
    this.byGeneration = new Map();
  }

  /** Starts to follow `generation`, which fills the message `answer`. */
  track(generation, answer) {
    if (!this.byGeneration.has(generation)) {
      this.byGeneration.set(generation, { generation, answer, seq: 0, text: "", state: "queued", position: null, prefill: null, done: null });
    }
    return this.byGeneration.get(generation);
  }

  get(generation) {
    return this.byGeneration.get(generation);
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

  delta(live, frame) {
    if (frame.seq <= live.seq) return {};
    if (frame.offset !== live.text.length) return { attachAfter: 0 };
    live.text += frame.text;
    live.seq = frame.seq;
    live.state = "running";
    live.position = live.prefill = null;
    return { live };
  }

  snapshot(live, frame) {
    if (frame.seq < live.seq && LIVE_STATES.has(frame.state)) return {};
    Object.assign(live, { text: frame.text, seq: frame.seq, state: frame.state, answer: frame.answer });
    if (frame.text) live.position = live.prefill = null;
    return { live };
  }

  done(live, frame) {
    live.state = frame.state;
    if (frame.length !== live.text.length && !live.isResyncing) {
      live.isResyncing = true;
      live.done = frame;
      return { live, attachAfter: 0 };
    }
    live.done = frame;
    return { live };
  }
}
