// Follows answers without a WebSocket: by event streams, or by polling where streams do not flow.
// Knows which answers are followed and how; frames go on as they come.

import { eventsOf, Stalled } from "./events.js";
import { polled } from "./polling.js";
import { siteAnswers } from "./probe.js";
import { ApiError } from "./request.js";
import { sleep } from "./time.js";

// Browsers open six connections to one site over HTTP/1.1, for all tabs together: most must stay free for requests,
// and tabs that nobody looks at hold none.
const MAX_STREAMS = 2;
const REATTACH_MS = 500;
// Streams that break off without a word, one after the other, while the site answers, are blocked on their way.
const BLOCKED_AFTER = 2;
// What held streams back may be gone by then.
const STREAMS_AGAIN_MS = 300_000;

export class Follower {
  /** `onLost(error)` hears of a site that cannot be reached or a session that ended; `onKind()` of another `kind`. */
  constructor({ onFrame, answerOf, onLost, onKind }) {
    Object.assign(this, { onFrame, answerOf, onLost, onKind, followed: new Map(), numStreams: 0, numBroken: 0, stalledAt: -Infinity });
  }

  get kind() {
    return performance.now() - this.stalledAt < STREAMS_AGAIN_MS ? "polling" : "events";
  }

  /** From the snapshot or from what comes after event `after`, to the end. */
  async follow(generation, after) {
    this.leave(generation);
    const controller = new AbortController();
    const following = { generation, seq: after, isOver: false, signal: controller.signal, controller };
    this.followed.set(generation, following);
    try {
      while (!following.isOver && !following.signal.aborted) await this.once(following);
    } catch (error) {
      if (!following.signal.aborted) this.broke(following, error);
    } finally {
      if (this.followed.get(generation) === following) this.followed.delete(generation);
    }
  }

  leave(generation) {
    this.followed.get(generation)?.controller.abort();
    this.followed.delete(generation);
  }

  close() {
    for (const generation of [...this.followed.keys()]) this.leave(generation);
  }

  /** The tab is looked at again, and streams may have been cut without a word; or not any more. */
  reconcile() {
    for (const { generation, seq } of [...this.followed.values()]) this.follow(generation, seq);
  }

  /** One stream until it ends, or the polling of the whole answer. */
  async once(following) {
    if (this.kind === "polling" || this.numStreams >= MAX_STREAMS || document.hidden) {
      await this.take(following, polled(following.generation, this.answerOf(following.generation), following.signal));
      return;
    }
    this.numStreams += 1;
    try {
      await this.take(following, eventsOf(following.generation, following.seq, following.signal));
      if (!following.isOver) await sleep(REATTACH_MS, following.signal); // another process goes on with it
    } catch (error) {
      if (!(await this.isHeldBack(error, following))) throw error;
      this.stalledAt = performance.now();
      this.onKind();
    } finally {
      this.numStreams -= 1;
    }
  }

  /** Whether it is the stream that fails, and not the site or what was asked of it. A first break may be chance. */
  async isHeldBack(error, following) {
    if (error instanceof Stalled) return true;
    const isForeign = error instanceof ApiError && (error.status === 0 || error.code === "request_failed");
    if (!isForeign || following.signal.aborted || !(await siteAnswers())) return false;
    this.numBroken += 1;
    return this.numBroken >= BLOCKED_AFTER;
  }

  async take(following, frames) {
    for await (const frame of frames) {
      if (following.signal.aborted) return;
      following.seq = frame.seq ?? following.seq;
      this.numBroken = 0;
      following.isOver = frame.type === "done";
      this.onFrame(frame);
    }
  }

  broke({ generation }, error) {
    if (!(error instanceof ApiError)) throw error;
    if (!this.onLost(error)) this.onFrame({ type: "error", code: error.code, message: error.message, generation });
  }
}
