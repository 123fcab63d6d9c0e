// Texts begun and not sent, one per conversation. Knows storage only.

const NEW = "new";

export class Drafts {
  constructor(user, storage = localStorage) {
    this.prefix = `rill.draft.${user}.`;
    this.storage = storage;
  }

  of(conversation) {
    return this.storage.getItem(this.prefix + (conversation ?? NEW)) ?? "";
  }

  keep(conversation, text) {
    const key = this.prefix + (conversation ?? NEW);
    try {
      if (text) this.storage.setItem(key, text);
      else this.storage.removeItem(key);
    } catch {
      this.storage.removeItem(key); // the browser has no room: what is in the field stays there, and an old draft goes
    }
  }
}
