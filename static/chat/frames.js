// What each frame of the server does to the state. Knows no elements.

import { fromFrame } from "./generation.js";
import { LIVE_STATES } from "./thread.js";

const QUIET_MS = 10_000;

export class FrameRouter {
  constructor({ store, live, keeper, asker, outbox, router, list, say }) {
    Object.assign(this, { store, live, keeper, asker, outbox, router, list, say });
    setInterval(() => this.wakeQuiet(), QUIET_MS);
  }

  /** Frames of unknown type are ignored: a newer server may say more than this page understands. */
  route(frame) {
    this[`on_${frame.type}`]?.(frame);
  }

  on_welcome() {
    const { conversation } = this.store;
    if (conversation.id) this.say({ type: "watch", conversation: conversation.id });
    // What ran before the loss is attached to again, what other tabs did meanwhile is fetched.
    for (const live of this.live.running()) this.say({ type: "attach", generation: live.generation, after: live.seq });
    this.asker.resendAll();
    if (conversation.state !== "loading") this.keeper.reload();
  }

  on_accepted(frame) {
    // Another tab may have sent the message again, heard first that it was accepted, and settled it for all tabs.
    const isIt = (other) => other.client_message_id === frame.client_message_id;
    const entry = this.outbox.find(frame.client_message_id) ?? this.store.conversation.pending.find(isIt);
    this.outbox.settle(frame.client_message_id);
    const live = this.live.track(frame.generation, frame.answer);
    live.heardAt = Date.now();
    if (this.keeper.adopt(frame, entry ?? null)) this.router.show(frame.conversation);
    this.list.touch(frame.conversation, frame.title);
  }

  on_queued(frame) {
    this.progress(frame);
  }

  on_prefill(frame) {
    this.progress(frame);
  }

  on_delta(frame) {
    this.progress(frame);
  }

  on_snapshot(frame) {
    this.live.track(frame.generation, frame.answer);
    const live = this.progress(frame);
    // A final snapshot that no `done` goes with: the stored row has the figures.
    if (live && !LIVE_STATES.has(live.state) && !live.done && !live.isReloaded) {
      live.isReloaded = true;
      this.keeper.reload();
    }
  }

  on_done(frame) {
    const live = this.progress(frame);
    const message = live && this.store.conversation.messages.get(live.answer);
    if (!message) return;
    message.generation = fromFrame(frame);
    this.store.announce("answer", message);
  }

  progress(frame) {
    const { live, attachAfter } = this.live.apply(frame);
    if (attachAfter !== undefined) this.say({ type: "attach", generation: frame.generation, after: attachAfter });
    if (!live) return null;
    live.heardAt = Date.now();
    const message = this.store.conversation.messages.get(live.answer);
    if (!message) return live;
    Object.assign(message, { text: live.text, state: live.state });
    this.store.announce("answer", message);
    return live;
  }

  on_started(frame) {
    if (frame.conversation === this.store.conversation.id) this.keeper.reload();
  }

  on_error(frame) {
    if (frame.client_message_id && this.asker.refused(frame)) return;
    if (frame.generation) this.keeper.reload();
    else this.store.announce("notice", { code: frame.code, retry_after_s: frame.retry_after_s });
  }

  /** Answers nothing was heard of for a while are asked for again, so that no wait is endless. */
  wakeQuiet() {
    for (const live of this.live.running()) {
      if (Date.now() - (live.heardAt ?? 0) > QUIET_MS) this.say({ type: "attach", generation: live.generation, after: live.seq });
    }
  }
}
