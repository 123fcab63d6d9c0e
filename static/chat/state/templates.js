// The prompt templates: kept in the browser, so that they are there at once and offline, and asked for anew when they
// may have changed. Also which of them this person used here, and when.

import { answered, request } from "../line/request.js";

const PATH = "/api/templates";

export class Templates {
  constructor(user, storage = localStorage) {
    Object.assign(this, { storage, listKey: `rill.templates.${user}`, usedKey: `rill.templates.used.${user}`, listeners: [] });
    const kept = JSON.parse(storage.getItem(this.listKey) ?? "null");
    this.items = kept?.items ?? [];
    this.etag = kept?.etag ?? "";
    this.isKnown = kept !== null; // else what there is comes with the first answer
  }

  /** Calls `listener` after each change of `items`. */
  on(listener) {
    this.listeners.push(listener);
  }

  /** Asks whether there is anything new. Raises ApiError; what is kept stays. */
  async refresh() {
    const headers = { Accept: "application/json", ...(this.etag && { "If-None-Match": this.etag }) };
    try {
      const response = await answered(PATH, { headers });
      this.take(await response.json(), response.headers.get("ETag") ?? "");
    } catch (error) {
      if (error.status !== 304) throw error;
    } finally {
      if (!this.isKnown) this.tell();
    }
  }

  take(items, etag) {
    Object.assign(this, { items, etag });
    this.storage.setItem(this.listKey, JSON.stringify({ items, etag }));
    this.tell();
  }

  tell() {
    this.isKnown = true;
    for (const listener of this.listeners) listener();
  }

  /** { id: [count, time of the last use] } of this person in this browser. */
  get history() {
    return JSON.parse(this.storage.getItem(this.usedKey) ?? "{}");
  }

  /** A template was taken: it counts here at once, and on the server for everybody's order. */
  used({ id }) {
    const { history } = this;
    history[id] = [(history[id]?.[0] ?? 0) + 1, Date.now()];
    this.storage.setItem(this.usedKey, JSON.stringify(history));
    // Where the server cannot be asked, a use less is counted; the text is here already.
    request("POST", `${PATH}/${id}/use`, {}).catch(() => null);
  }

  /** Makes a template of one's own, or changes the one with `id`. Raises ApiError. */
  async save(id, columns) {
    const saved = id ? await request("PATCH", `${PATH}/${id}`, columns) : await request("POST", PATH, columns);
    this.take([...this.items.filter((item) => item.id !== saved.id), saved], "");
    return saved;
  }

  /** Raises ApiError. */
  async erase(id) {
    await request("DELETE", `${PATH}/${id}`);
    this.take(this.items.filter((item) => item.id !== id), "");
  }
}
