// What a person asks of the server: send, try again, stop. Text is kept in the outbox until it is accepted.

import { newId } from "../parts/ids.js";
import { Beginner, beginningOf } from "./begin.js";
import { EarlyReader } from "./early.js";
import { chosenFor } from "../state/models.js";
import { isLive, pathTo } from "../state/tree.js";

export class Asker {
  constructor(store, outbox, say) {
    Object.assign(this, { store, outbox, say, begun: new Map(), early: new EarlyReader(store, say) });
    this.beginner = new Beginner(store, (entry) => this.adopted(entry));
  }

  /** Sends `text` in the shown conversation, now or as soon as the line is back. */
  ask(text) {
    this.put({ parent: this.store.conversation.leaf, text });
  }

  /** Asks `text` in the place of the question `message`, as another branch. An answer in the making is stopped first. */
  edit(message, text) {
    if (this.answering()) this.stop();
    this.put({ parent: message.parent, text, edited: message.id });
  }

  put(words) {
    const { conversation } = this.store;
    const entry = { client_message_id: newId(), conversation: conversation.id, ...beginningOf(conversation, chosenFor(this.store)), ...words };
    this.outbox.keep(entry);
    conversation.pending.push(entry);
    this.store.announce("thread", { own: true });
    this.transmit(entry);
  }

  async transmit(entry) {
    if (entry.temporary && !this.store.conversation.pending.some((other) => other.client_message_id === entry.client_message_id)) {
      this.outbox.settle(entry.client_message_id); // its chat has ended with the page that it stood in
      return;
    }
    const { client_message_id, conversation, parent, text, edited, temporary = false } = entry;
    if (entry.setup && !(await this.hasBegun(entry))) return;
    this.say({ type: "send", client_message_id, conversation, parent, text, branch: Boolean(edited), temporary });
  }

  /** False when the chat that was set up is not there: it waits for the line, or the message says why. */
  async hasBegun(entry) {
    try {
      return await this.beginner.hasBegun(entry);
    } catch ({ code, retry_after_s, resets_at }) {
      this.refused({ client_message_id: entry.client_message_id, code, retry_after_s, resets_at });
      return false;
    }
  }

  /** After the line came back: everything unanswered goes out again; the server knows its ids and doubles nothing. */
  async resendAll() {
    await this.outbox.tabs.ready;
    for (const entry of this.outbox.own()) if (!entry.refusal) this.transmit(entry);
  }

  /** A message of a tab that is gone is ours now, and one that waited goes out. */
  adopted(entry) {
    if (!entry.refusal) this.transmit(entry);
  }

  resend(id) {
    const { refusal, ...entry } = this.outbox.find(id);
    this.outbox.keep(entry);
    this.refresh(entry);
    this.transmit(entry);
  }

  /** Takes a message that was not accepted back out and returns its entry. */
  takeBack(id) {
    const taken = this.outbox.find(id);
    this.outbox.settle(id);
    const { conversation } = this.store;
    conversation.pending = conversation.pending.filter((entry) => entry.client_message_id !== id);
    this.store.announce("thread");
    return taken;
  }

  /** The server refused the message: it stays, with the reason beside it. */
  refused(frame) {
    const entry = this.outbox.find(frame.client_message_id);
    if (!entry) return false;
    const marked = { ...entry, refusal: { code: frame.code, retry_after_s: frame.retry_after_s, resets_at: frame.resets_at } };
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
    this.wish({ type: "regenerate", client_message_id: newId(), message });
  }

  /** Lets `message`, an answer that was cut for its length, go on: the new one beside it begins with its words. */
  goOn({ id, text }) {
    const client_message_id = newId();
    if (this.wish({ type: "continue", client_message_id, message: id })) this.begun.set(client_message_id, text);
  }

  /** What the accepted answer begins with, where the page has it already. */
  begunBy(client_message_id) {
    return this.begun.get(client_message_id) ?? "";
  }

  wish(frame) {
    const isSent = this.say(frame);
    if (!isSent) this.store.announce("notice", { code: "offline" });
    return isSent;
  }

  /** Stops whatever is being answered on the shown branch. */
  stop() {
    const live = this.answering();
    if (live) this.wish({ type: "stop", generation: live.generation.id });
  }

  /** Tells the server that a question may come soon. */
  warm() {
    const { id } = this.store.conversation;
    if (id) this.say({ type: "warm", conversation: id });
  }

  /** The draft has changed; it is read early where the person chose so. */
  warmDraft(text) {
    this.early.draft(text);
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
