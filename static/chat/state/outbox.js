// Messages that the server has not accepted yet, kept over reloads. All tabs of a browser see all of them; each is sent
// by the tab in which it was written, and by another one when that is gone. Knows storage only.

const KEY = "rill.outbox";
const ID = /^[0-9a-f-]{36}$/;

export class Outbox {
  /** Each entry stands under a key of its own: tabs that write at once cannot lose each other's. */
  constructor(user, tabs, storage = localStorage) {
    Object.assign(this, { tabs, storage, prefix: `${KEY}.${user}.`, waitedFor: new Set() });
  }

  /** In the order in which they were written. */
  all() {
    const keys = Array.from({ length: this.storage.length }, (_, i) => this.storage.key(i)).filter((key) => this.isOurs(key));
    return keys.map((key) => JSON.parse(this.storage.getItem(key))).sort((a, b) => a.at - b.at);
  }

  /** What this tab has to send. */
  own() {
    return this.all().filter((entry) => this.isOwn(entry));
  }

  /** What is on its way in a conversation. One that has not begun yet is only seen where it is written. */
  of(conversation) {
    return this.all().filter((entry) => entry.conversation === conversation && (conversation || this.isOwn(entry)));
  }

  find(id) {
    return JSON.parse(this.storage.getItem(this.prefix + id)) ?? undefined;
  }

  /** Keeps `entry` { client_message_id, conversation, parent, text, … } until it is settled; this tab sends it. */
  keep(entry) {
    const kept = { ...entry, tab: this.tabs.name, at: entry.at ?? Date.now() };
    this.storage.setItem(this.prefix + entry.client_message_id, JSON.stringify(kept));
  }

  settle(id) {
    this.storage.removeItem(this.prefix + id);
  }

  /** Calls `changed()` when another tab wrote, and `adopted(entry)` for each entry of a tab that is gone. */
  listen({ changed, adopted }) {
    const look = () => this.waitForOthers(adopted);
    addEventListener("storage", ({ key }) => {
      if (key !== null && !this.isOurs(key)) return;
      changed();
      look();
    });
    this.tabs.ready.then(look);
  }

  waitForOthers(adopted) {
    for (const { tab } of this.all().filter((entry) => !this.isOwn(entry))) {
      if (this.waitedFor.has(tab)) continue;
      this.waitedFor.add(tab);
      this.tabs.whenGone(tab, () => this.adopt(tab, adopted)).finally(() => this.waitedFor.delete(tab));
    }
  }

  adopt(tab, adopted) {
    for (const entry of this.all().filter((other) => other.tab === tab)) {
      this.keep(entry);
      adopted(entry);
    }
  }

  /** Where tabs know nothing of each other all send everything: the server doubles nothing. */
  isOwn(entry) {
    return !this.tabs.knowsOthers || entry.tab === this.tabs.name;
  }

  isOurs(key) {
    return key.startsWith(this.prefix) && ID.test(key.slice(this.prefix.length));
  }
}
