// What a person asks of the server: send, try again, stop. Text is kept in the outbox until it is accepted.

import { isLive, pathTo } from "./thread.js";

export class Asker {
  constructor(store, outbox, say) {
    Object.assign(this, { store, outbox, say });
  }

  /** Sends `text` in the shown conversation, now or as soon as the line is back. */
  ask(text) {
    const { conversation } = this.store;
    const entry = { client_message_id: crypto.randomUUID(), conversation: conversation.id, parent: conversation.leaf, text };
    this.outbox.keep(entry);
    conversation.pending.push(entry);
    this.store.announce("thread", { own: true });
    this.transmit(entry);
  }

  transmit({ client_message_id, conversation, parent, text }) {
    this.say({ type: "send", client_message_id, conversation, parent, text });
  }

  /** After the line came back: everything unanswered goes out again; the server knows its ids and doubles nothing. */
  resendAll() {
    for (const entry of this.outbox.all()) if (!entry.refusal) this.transmit(entry);
  }

  resend(id) {
    const { refusal, ...entry } = this.outbox.find(id);
    this.outbox.keep(entry);
    this.refresh(entry);
    this.transmit(entry);
  }

  /** Takes a message that was not accepted back out and returns its text. */
  takeBack(id) {
    const { text } = this.outbox.find(id);
    this.outbox.settle(id);
    const { conversation } = this.store;
    conversation.pending = conversation.pending.filter((entry) => entry.client_message_id !== id);
    this.store.announce("thread");
    return text;
  }

  /** The server refused the message: it stays, with the reason beside it. */
  refused(frame) {
    const entry = this.outbox.find(frame.client_message_id);
    if (!entry) return false;
    const marked = { ...entry, refusal: { code: frame.code, retry_after_s: frame.retry_after_s } };
    this.outbox.keep(marked);
    this.refresh(marked);
    return true;
  }

  refresh(entry) {
    const { pending } = this.store.conversation;
    const place = pending.findIndex((other) => other.client_message_id === entry.client_message_id);
    if (place < 0) return;
    pending[place] = entry;
    this.store.announce("thread");
  }

  /** A new answer beside `message`, or to it when it is a question. */
  regenerate(message) {
    const isSent = this.say({ type: "regenerate", client_message_id: crypto.randomUUID(), message });
    if (!isSent) this.store.announce("notice", { code: "offline" });
  }

  /** Stops whatever is being answered on the shown branch. */
  stop() {
    const live = this.answering();
    if (live && !this.say({ type: "stop", generation: live.generation.id })) this.store.announce("notice", { code: "offline" });
  }

  /** Tells the server that a question may come soon. */
  warm() {
    const { id } = this.store.conversation;
    if (id) this.say({ type: "warm", conversation: id });
  }

  /** The answer on the shown branch that is still being made, if any. */
  answering() {
    const { messages, leaf } = this.store.conversation;
    return pathTo(messages, leaf).find((message) => isLive(message) && message.generation);
  }

  /** True while a new question would have to wait. */
  isBusy() {
    return Boolean(this.answering()) || this.store.conversation.pending.some((entry) => !entry.refusal);
  }
}
