// Messages that the server has not accepted yet, kept over reloads. Knows storage only.

const KEY = "rill.outbox";

export class Outbox {
  constructor(user, storage = localStorage) {
    this.key = `${KEY}.${user}`;
    this.storage = storage;
  }

  all() {
    return JSON.parse(this.storage.getItem(this.key) ?? "[]");
  }

  /** Keeps `entry` { client_message_id, conversation, parent, text } until it is settled. */
  keep(entry) {
    this.write([...this.all().filter((other) => other.client_message_id !== entry.client_message_id), entry]);
  }

  find(id) {
    return this.all().find((entry) => entry.client_message_id === id);
  }

  settle(id) {
    this.write(this.all().filter((entry) => entry.client_message_id !== id));
  }

  write(entries) {
    if (entries.length) this.storage.setItem(this.key, JSON.stringify(entries));
    else this.storage.removeItem(this.key);
  }
}
