// The conversation that is shown: opens it, keeps it equal to the server's, follows what is being answered in it.

import { getConversation, changeConversation, rateMessage } from "./api.js";
import { fromRow } from "./generation.js";
import { emptyConversation } from "./store.js";
import { isLive, leafBelow } from "./thread.js";

export class ConversationKeeper {
  constructor(store, live, outbox) {
    Object.assign(this, { store, live, outbox, say: () => false });
  }

  /** Shows the conversation `id`, or a new one for null. */
  async open(id) {
    this.store.conversation = { ...emptyConversation(), id, state: id ? "loading" : "ready" };
    this.takePending();
    this.store.announce("conversation");
    this.say({ type: "watch", conversation: id });
    if (!id) return;
    await this.reload();
    this.say({ type: "warm", conversation: id });
  }

  /** Fetches the shown conversation anew and attaches to whatever is being answered in it. */
  async reload() {
    const { conversation } = this.store;
    if (!conversation.id) return;
    const { numChanges } = conversation;
    let stored;
    try {
      stored = await getConversation(conversation.id);
    } catch (error) {
      if (conversation !== this.store.conversation || conversation.messages.size) return;
      conversation.state = error.status === 404 ? "missing" : "unreachable";
      this.store.announce("conversation");
      return;
    }
    if (conversation !== this.store.conversation) return; // another one was opened meanwhile
    if (conversation.numChanges !== numChanges) {
      await this.reload(); // what came may be older than what this page did meanwhile, and would hide it
      return;
    }
    this.merge(conversation, stored);
    this.store.announce("thread");
    this.follow();
  }

  merge(conversation, stored) {
    const messages = stored.messages.map((row) => ({ ...row, generation: fromRow(row.generation) }));
    conversation.messages = new Map(messages.map((message) => [message.id, message]));
    conversation.title = stored.title;
    conversation.leaf = stored.active_leaf ?? messages.at(-1)?.id ?? null;
    conversation.state = "ready";
    for (const live of this.live.running()) {
      const message = conversation.messages.get(live.answer);
      if (message && isLive(message) && live.text.length > message.text.length) message.text = live.text;
    }
    this.takePending();
  }

  /** Attaches to every answer of the shown conversation that is still being made. */
  follow() {
    for (const message of this.store.conversation.messages.values()) {
      if (!isLive(message) || !message.generation) continue;
      const live = this.live.track(message.generation.id, message.id);
      this.say({ type: "attach", generation: live.generation, after: live.seq });
    }
  }

  takePending() {
    const { conversation } = this.store;
    conversation.pending = this.outbox.all().filter((entry) => entry.conversation === conversation.id);
  }

  /** Adds an accepted question and its queued answer. `entry` is null when the question was stored before. */
  adopt(frame, entry) {
    const { conversation } = this.store;
    const isNew = conversation.id === null && entry?.conversation === null;
    if (frame.conversation !== conversation.id && !isNew) return false;
    if (isNew) Object.assign(conversation, { id: frame.conversation, title: frame.title });
    const now = new Date().toISOString();
    this.add({ id: frame.user_message, parent: frame.parent, role: "user", text: entry?.text ?? "", state: "complete", created_at: now });
    this.add({ id: frame.answer, parent: frame.user_message, role: "assistant", text: "", state: "queued", created_at: now, generation: { id: frame.generation } });
    conversation.leaf = frame.answer;
    conversation.numChanges += 1;
    this.takePending();
    this.store.announce("thread", { own: true });
    if (isNew) this.say({ type: "watch", conversation: conversation.id });
    return true;
  }

  add(message) {
    const { messages } = this.store.conversation;
    if (!messages.has(message.id)) messages.set(message.id, message);
  }

  /** Keeps a thumb on an answer; shown at once, and taken back where the server could not keep it. */
  async rate(message, verdict) {
    const before = message.feedback;
    const show = (feedback) => {
      message.feedback = feedback;
      this.store.conversation.numChanges += 1;
      this.store.announce("answer", message);
    };
    show(verdict);
    try {
      await rateMessage(message.id, verdict);
      this.store.announce("rated", message);
    } catch {
      show(before);
      this.store.announce("notice", { code: "not_saved" });
    }
  }

  /** Shows the branch through `id` and lets the server remember it. */
  async showVariant(id) {
    const { conversation } = this.store;
    conversation.leaf = leafBelow(conversation.messages, id);
    conversation.numChanges += 1;
    this.store.announce("thread");
    await changeConversation(conversation.id, { active_leaf: conversation.leaf }).catch(() => this.store.announce("notice", { code: "not_saved" }));
  }
}
