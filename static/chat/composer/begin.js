// A new chat until its first message is accepted: whether it is temporary, and what was set up for it.

import { request } from "../line/request.js";

/** What the first message carries of the chat that it begins by `model`; nothing for a chat that is stored already. */
export function beginningOf({ id, is_temporary, system_prompt, parameters }, model = "") {
  if (id) return {};
  const isSetUp = system_prompt || model || Object.keys(parameters).length > 0;
  const setup = { system_prompt, parameters, ...(model && { model }) };
  return { ...(is_temporary && { temporary: true }), ...(isSetUp && { setup }) };
}

/** Makes the chats that were set up; the server makes each once, however often it is asked for. */
export class Beginner {
  /** `again(entry)` is called for each first message that waited for the line, when that is back. */
  constructor(store, again) {
    Object.assign(this, { store, waiting: new Map(), underWay: new Set() });
    store.on("connection", () => this.isOpen && this.takeWaiting().forEach(again));
  }

  get isOpen() {
    return this.store.connection === "open";
  }

  takeWaiting() {
    const entries = [...this.waiting.values()];
    this.waiting.clear();
    return entries;
  }

  /** True when the chat of this first message is there; false while that waits or is under way. Raises ApiError. */
  async hasBegun(entry) {
    const { client_message_id, temporary = false, setup } = entry;
    if (!this.isOpen) this.waiting.set(client_message_id, entry);
    if (!this.isOpen || this.underWay.has(client_message_id)) return false;
    this.underWay.add(client_message_id);
    try {
      await request("POST", "/api/conversations", { client_message_id, is_temporary: temporary, ...setup });
      return true;
    } catch (error) {
      if (error.status !== 0 || this.isOpen) throw error;
      this.waiting.set(client_message_id, entry); // the line broke meanwhile
      return false;
    } finally {
      this.underWay.delete(client_message_id);
    }
  }
}
