// What each frame of the server does to the state. Knows no elements.

import { fromFrame } from "../state/generation.js";
import { LIVE_STATES } from "../state/tree.js";

const QUIET_MS = 10_000;

export class FrameRouter {
  constructor({ store, live, keeper, asker, outbox, router, list, say, temporary, isLeaving }) {
    Object.assign(this, { store, live, keeper, asker, outbox, router, list, say, temporary, isLeaving });
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
    if (this.wasWelcome) this.list.refresh();
    this.wasWelcome = true;
  }

  on_accepted(frame) {
    if (this.temporary.isLeft(frame)) return;
    // Where the browser has no locks, another tab may have sent the message again and settled it for all tabs.
    const isIt = (other) => other.client_message_id === frame.client_message_id;
    const entry = this.outbox.find(frame.client_message_id) ?? this.store.conversation.pending.find(isIt);
    this.outbox.settle(frame.client_message_id);
    const live = this.live.track(frame.generation, frame.answer, frame.conversation);
    live.heardAt = Date.now();
    live.text ||= this.asker.begunBy(frame.client_message_id);
    const isShown = this.keeper.adopt(frame, entry ?? null, live.text);
    if (isShown && this.store.conversation.is_temporary) return; // it gets no address and stands in no list
    if (isShown) this.router.show(frame.conversation);
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
    if (!message) {
      this.live.forget(frame.generation); // of another chat: what is stored is shown when that is opened
      return;
    }
    message.generation = fromFrame(frame);
    this.list.answering(this.store.conversation.id, false);
    this.store.announce("answer", message);
  }

  progress(frame) {
    const { live, attachAfter } = this.live.apply(frame);
    if (attachAfter !== undefined) this.say({ type: "attach", generation: frame.generation, after: attachAfter });
    if (!live) return null;
    live.heardAt = Date.now();
    const message = this.store.conversation.messages.get(live.answer);
    if (!message) {
      this.elsewhere(live);
      return live;
    }
    Object.assign(message, { text: live.text, state: live.state });
    this.store.announce("answer", message);
    return live;
  }

  /** An answer of a chat that is not shown goes on, or has ended: whoever shows the list may mark it. */
  elsewhere(live) {
    if (live.state === live.toldState || live.conversation === this.store.conversation.id) return;
    live.toldState = live.state;
    this.list.answering(live.conversation, LIVE_STATES.has(live.state));
  }

  on_started(frame) {
    if (frame.conversation === this.store.conversation.id) this.keeper.reload();
  }

  /** Something happened to a chat of this person's, in whichever tab or program. */
  on_changed(frame) {
    this.list.heard(frame);
    const isShown = frame.conversation && frame.conversation === this.store.conversation.id;
    if (isShown && frame.kind === "reworded") this.keeper.reload();
    if (isShown && frame.kind === "erased" && !this.isLeaving(frame.conversation)) this.keeper.lost();
  }

  on_error(frame) {
    if (frame.client_message_id && this.asker.refused(frame)) return;
    if (frame.code === "not_found") this.live.forget(frame.generation); // erased meanwhile
    if (frame.generation) this.keeper.reload();
    else this.store.announce("notice", { code: frame.code, retry_after_s: frame.retry_after_s, resets_at: frame.resets_at });
  }

  /** Answers nothing was heard of for a while are asked for again, so that no wait is endless. */
  wakeQuiet() {
    for (const live of this.live.running()) {
      if (Date.now() - (live.heardAt ?? 0) > QUIET_MS) this.say({ type: "attach", generation: live.generation, after: live.seq });
    }
  }
}
