// The list of conversations as data: fetches, searches, renames, deletes. Knows no elements.

import { listConversations, changeConversation, deleteConversation } from "./api.js";

export class ConversationList {
  constructor(store) {
    this.store = store;
  }

  async load(query = this.store.list.query) {
    const list = (this.store.list = { ...this.store.list, query, state: this.store.list.items.length ? "ready" : "loading" });
    this.store.announce("list");
    await this.fetchInto(list, null);
  }

  async more() {
    const { list } = this.store;
    if (list.next) await this.fetchInto(list, list.next);
  }

  async fetchInto(list, cursor) {
    try {
      const page = await listConversations(list.query, cursor);
      list.items = cursor ? [...list.items, ...page.items] : page.items;
      list.next = page.next;
      list.state = "ready";
    } catch {
      list.state = "unreachable";
    }
    if (list === this.store.list) this.store.announce("list");
  }

  /** A conversation was written to: it moves to the top. */
  touch(id, title) {
    const { list } = this.store;
    const known = list.items.find((item) => item.id === id);
    const item = { is_pinned: false, ...known, id, title: title || known?.title || "", updated_at: new Date().toISOString() };
    list.items = [item, ...list.items.filter((other) => other.id !== id)];
    this.store.announce("list");
  }

  async rename(id, title) {
    const item = this.store.list.items.find((other) => other.id === id);
    const before = item.title;
    this.retitle(id, title);
    await changeConversation(id, { title }).catch(() => {
      this.retitle(id, before);
      this.store.announce("notice", { code: "not_saved" });
    });
  }

  retitle(id, title) {
    this.store.list.items.find((item) => item.id === id).title = title;
    const { conversation } = this.store;
    if (conversation.id === id) conversation.title = title;
    this.store.announce("list");
    this.store.announce("title");
  }

  /** True when it is gone. */
  async remove(id) {
    try {
      await deleteConversation(id);
    } catch {
      this.store.announce("notice", { code: "not_deleted" });
      return false;
    }
    this.store.list.items = this.store.list.items.filter((item) => item.id !== id);
    this.store.announce("list");
    return true;
  }
}
