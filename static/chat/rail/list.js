// The list of conversations as data: what is fetched of it and what is heard of it. Knows no elements.

import { listConversations } from "../line/chats.js";
import { fits, inOrder, merged } from "./order.js";

const BARE = { tags: [], is_pinned: false, is_archived: false, is_answering: false };

export class ConversationList {
  constructor(store, marks) {
    Object.assign(this, { store, marks, marked: marks.all() });
    marks.on(() => this.newlyMarked());
  }

  /** The list that `wanted` { query, tag, isArchived } asks for; what it leaves out stays as it is. */
  async load(wanted = {}) {
    const list = (this.store.list = { ...this.store.list, ...wanted, numFound: null });
    list.state = list.items.length ? "busy" : "loading";
    this.store.announce("list");
    await this.fetched(list, null, (page) => {
      list.items = page.items;
      list.numFound = page.num_found;
      list.next = page.next;
    });
  }

  /** Fetches the beginning of the same list anew, after a loss. What was loaded further down stays. */
  async refresh() {
    const { list } = this.store;
    if (list.state !== "ready") return this.load();
    return this.fetched(list, null, (page) => {
      const items = merged(list.items, page);
      if (items.length === page.items.length) list.next = page.next;
      list.items = items;
    });
  }

  /** What follows what is loaded. */
  async more() {
    const { list } = this.store;
    if (!list.next || list.isMore) return;
    list.isMore = true;
    await this.fetched(list, list.next, (page) => {
      const known = new Set(list.items.map((item) => item.id));
      list.items = inOrder([...list.items, ...page.items.filter((item) => !known.has(item.id))]);
      list.next = page.next;
    });
  }

  async fetched(list, cursor, take) {
    try {
      take(await listConversations(list, cursor));
      list.state = "ready";
    } catch {
      list.state = cursor ? "stuck" : "unreachable";
    }
    list.isMore = false;
    if (list === this.store.list) this.store.announce("list");
  }

  find(id) {
    return this.store.list.items.find((item) => item.id === id);
  }

  /** Puts a conversation where it belongs now, or takes it out where it belongs no longer. */
  put(item) {
    const { list, conversation } = this.store;
    const others = list.items.filter((other) => other.id !== item.id);
    const isKnown = others.length < list.items.length;
    list.items = fits(item, list, isKnown) ? inOrder([item, ...others]) : others;
    if (conversation.id === item.id && conversation.title !== item.title) {
      conversation.title = item.title;
      this.store.announce("title");
    }
    this.store.announce("list");
  }

  /** They are gone. */
  drop(ids) {
    const gone = new Set(ids);
    const { list } = this.store;
    list.items = list.items.filter((item) => !gone.has(item.id));
    for (const id of gone) this.marks.remove(id);
    this.store.announce("list");
  }

  /** A conversation was written to: it moves to the top. */
  touch(id, title) {
    const now = new Date().toISOString();
    const known = this.find(id);
    this.put({ created_at: now, ...BARE, ...known, id, title: title || known?.title || "", updated_at: now, is_answering: true });
  }

  /** An answer in it is being made, or is not any more. */
  answering(id, is_answering) {
    const item = this.find(id);
    if (item && item.is_answering !== is_answering) this.put({ ...item, is_answering });
    if (!is_answering) this.mark(id);
  }

  /** What the server says of a conversation, in whichever tab or program it happened. */
  heard({ kind, conversation, item }) {
    if (kind === "many") this.refresh();
    else if (!item) this.drop([conversation]);
    else {
      this.put(item);
      if (kind === "answered") this.mark(conversation);
    }
  }

  /** An answer came in a chat: one that is not shown gets a mark. */
  mark(id) {
    if (this.store.conversation.id !== id) this.marks.add(id);
  }

  /** Announces which chats have a mark now and had none, whichever tab set it. */
  newlyMarked() {
    const marked = this.marks.all();
    for (const id of marked) if (!this.marked.has(id) && this.store.conversation.id !== id) this.store.announce("elsewhere", this.find(id));
    this.marked = marked;
  }
}
