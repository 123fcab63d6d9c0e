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
    if (text) this.storage.setItem(key, text);
    else this.storage.removeItem(key);
  }
}
