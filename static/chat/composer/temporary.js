// A chat that leaves nothing behind: it is not listed, searched, cached or read early, and it ends with its page.

import { deleteConversation, leaveConversation } from "../line/api.js";
import { byId } from "../parts/dom.js";

export class Temporary {
  constructor(store, outbox) {
    Object.assign(this, { store, outbox, shown: store.conversation, left: new Set() });
    this.banner = byId("temporary");
    store.on("conversation", () => this.opened());
    store.on("setup", () => this.draw());
    addEventListener("pagehide", () => this.end(this.shown, leaveConversation));
  }

  /** Makes the new chat a temporary one, or an ordinary one again. */
  set(isTemporary) {
    const { conversation } = this.store;
    if (conversation.id || conversation.pending.length) return;
    conversation.is_temporary = isTemporary;
    this.store.announce("setup");
  }

  opened() {
    const before = this.shown;
    this.shown = this.store.conversation;
    if (before !== this.shown) this.end(before, deleteConversation);
    this.draw();
  }

  /** `erase(id)` takes the stored chat away; the server does so after a day where that fails. */
  end(conversation, erase) {
    if (!conversation.is_temporary) return;
    for (const { client_message_id } of conversation.pending) {
      this.outbox.settle(client_message_id);
      this.left.add(client_message_id);
    }
    if (conversation.id) erase(conversation.id).catch(() => null);
  }

  /** True when the first message of a chat that was left meanwhile is accepted only now. */
  isLeft({ client_message_id, conversation }) {
    if (!this.left.delete(client_message_id)) return false;
    deleteConversation(conversation).catch(() => null);
    return true;
  }

  draw() {
    this.banner.hidden = !this.shown.is_temporary;
    document.documentElement.toggleAttribute("data-temporary", this.shown.is_temporary);
  }
}
