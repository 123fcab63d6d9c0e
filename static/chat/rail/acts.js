// What a person does with chats: shown at once, and taken back where the server could not keep it. Knows no elements.

import { changeConversation, deleteConversation } from "../line/api.js";
import { changeMany } from "../line/chats.js";

// What each action of the server's bulk route changes in a line of the list.
const COLUMNS = {
  archive: () => ({ is_archived: true }),
  unarchive: () => ({ is_archived: false }),
  pin: () => ({ is_pinned: true }),
  unpin: () => ({ is_pinned: false }),
  tag: ({ tags }, tag) => ({ tags: [...new Set([...tags, tag])] }),
  untag: ({ tags }, tag) => ({ tags: tags.filter((other) => other !== tag) }),
};

export class Acts {
  constructor(store, list, router) {
    Object.assign(this, { store, list, router, leaving: new Set() });
  }

  /** Changes title, pin, archive or tags of `item`; true when it is kept. */
  async change(item, changes) {
    this.list.put({ ...item, ...changes });
    try {
      await changeConversation(item.id, changes);
      return true;
    } catch {
      this.list.put(item);
      this.store.announce("notice", { code: "not_saved" });
      return false;
    }
  }

  /** One action on many; true when it is kept. */
  async changeMany(action, items, tag = null) {
    const ids = items.map((item) => item.id);
    try {
      await changeMany(action, ids, tag);
    } catch {
      this.store.announce("notice", { code: "not_saved" });
      this.list.refresh(); // some of them may be changed
      return false;
    }
    for (const item of items) this.list.put({ ...item, ...COLUMNS[action](item, tag) });
    return true;
  }

  /** Erases them; true when they are gone. */
  async remove(items) {
    const ids = items.map((item) => item.id);
    for (const id of ids) this.leaving.add(id);
    try {
      await (ids.length === 1 ? deleteConversation(ids[0]) : changeMany("delete", ids));
    } catch {
      for (const id of ids) this.leaving.delete(id);
      this.store.announce("notice", { code: "not_deleted" });
      this.list.refresh();
      return false;
    }
    this.list.drop(ids);
    if (ids.includes(this.store.conversation.id)) this.router.go(null);
    return true;
  }
}
