// The conversation that is shown: opens it, keeps it equal to the server's, follows what is being answered in it.

import { changeConversation, getConversation, getMessages } from "../line/api.js";
import { fromRow } from "../state/generation.js";
import { emptyConversation } from "../state/store.js";
import { addMessage, isLive, topOf } from "../state/tree.js";

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

  /** The shown conversation was erased elsewhere. */
  lost() {
    this.store.conversation = { ...emptyConversation(), id: this.store.conversation.id, state: "missing" };
    this.store.announce("conversation");
  }

  /** Fetches the end of the shown branch anew and attaches to whatever is being answered there. */
  async reload() {
    const { conversation } = this.store;
    if (!conversation.id) return;
    const { numChanges } = conversation;
    let stored, page;
    try {
      [stored, page] = await Promise.all([getConversation(conversation.id), getMessages(conversation.id)]);
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
    const { title, system_prompt, parameters, model, is_temporary } = stored;
    Object.assign(conversation, { title, system_prompt, parameters, model, is_temporary, state: "ready" });
    this.show(conversation, page.items);
    this.takePending();
    this.store.announce("thread");
    this.follow();
  }

  /** Shows the branch that ends with `rows`. */
  show(conversation, rows) {
    this.take(conversation, rows);
    conversation.leaf = rows.at(-1)?.id ?? null;
  }

  /** Rows take the place of what was known of these messages; of an answer in the making the page may have more. */
  take(conversation, rows) {
    const running = new Map(this.live.running().map((live) => [live.answer, live.text]));
    for (const row of rows) {
      const message = { ...row, generation: fromRow(row.generation) };
      const text = running.get(row.id) ?? "";
      if (isLive(message) && text.length > message.text.length) message.text = text;
      conversation.messages.set(row.id, message);
    }
  }

  /** Adds messages above those that are shown. False when they could not be had. */
  async loadEarlier() {
    const { conversation } = this.store;
    const top = topOf(conversation.messages, conversation.leaf);
    if (!top) return true;
    try {
      const page = await getMessages(conversation.id, { branch: conversation.leaf, before: top });
      if (conversation !== this.store.conversation) return true;
      this.take(conversation, page.items);
    } catch {
      return false;
    }
    this.store.announce("thread", { isEarlier: true });
    return true;
  }

  /** Attaches to every answer of the shown conversation that is still being made. */
  follow() {
    for (const message of this.store.conversation.messages.values()) {
      if (!isLive(message) || !message.generation) continue;
      const live = this.live.track(message.generation.id, message.id, this.store.conversation.id);
      this.say({ type: "attach", generation: live.generation, after: live.seq });
    }
  }

  takePending() {
    const { conversation } = this.store;
    conversation.pending = this.outbox.of(conversation.id);
  }

  /** Another tab wrote, sent or lost a message. */
  pendingChanged() {
    this.takePending();
    this.store.announce("thread");
  }

  /**
   * Adds an accepted question and its queued answer, which begins with `begun`. `entry` is null when the question was
   * stored before.
   */
  adopt(frame, entry, begun) {
    const { conversation } = this.store;
    const isNew = conversation.id === null && entry?.conversation === null;
    if (frame.conversation !== conversation.id && !isNew) return false;
    if (isNew) Object.assign(conversation, { id: frame.conversation, title: frame.title, model: entry.setup?.model ?? "" });
    const now = new Date().toISOString();
    addMessage(conversation.messages, { id: frame.user_message, parent: frame.parent, role: "user", text: entry?.text ?? "", state: "complete", created_at: now });
    addMessage(conversation.messages, { id: frame.answer, parent: frame.user_message, role: "assistant", text: begun, state: "queued", created_at: now, generation: { id: frame.generation } });
    conversation.leaf = frame.answer;
    conversation.numChanges += 1;
    this.takePending();
    this.store.announce("thread", { own: true });
    if (isNew) this.say({ type: "watch", conversation: conversation.id });
    return true;
  }

  /** Shows the branch through `id`, a variant of the message `instead`, and lets the server remember it. */
  async showVariant(id, instead) {
    const { conversation } = this.store;
    try {
      const page = await getMessages(conversation.id, { branch: id });
      if (conversation !== this.store.conversation) return;
      this.show(conversation, page.items);
      conversation.numChanges += 1;
      this.store.announce("thread", { variant: id, instead });
      this.follow();
      await changeConversation(conversation.id, { active_leaf: conversation.leaf });
    } catch {
      this.store.announce("notice", { code: "not_saved" });
    }
  }
}
