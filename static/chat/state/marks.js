// Which chats have an answer that was not looked at yet. Kept in the browser, the same in all tabs. Knows no elements.

const MOST = 500;

export class Marks {
  constructor(user, storage = localStorage, page = window) {
    Object.assign(this, { key: `rill.new.${user}`, storage, listeners: [] });
    page.addEventListener("storage", (event) => event.key === this.key && this.tell());
  }

  /** Calls `listener` after each change, also one of another tab. */
  on(listener) {
    this.listeners.push(listener);
  }

  all() {
    return new Set(JSON.parse(this.storage.getItem(this.key) ?? "[]"));
  }

  add(id) {
    const marked = this.all();
    if (!marked.has(id)) this.write([...marked, id].slice(-MOST));
  }

  remove(id) {
    const marked = this.all();
    if (marked.delete(id)) this.write([...marked]);
  }

  write(ids) {
    if (ids.length) this.storage.setItem(this.key, JSON.stringify(ids));
    else this.storage.removeItem(this.key);
    this.tell();
  }

  tell() {
    for (const listener of this.listeners) listener();
  }
}
