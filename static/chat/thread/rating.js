// Keeps thumbs on answers. Shown at once, and taken back where the server could not keep one.

import { rateMessage, unrateMessage } from "../line/api.js";

export class Rater {
  constructor(store) {
    this.store = store;
  }

  /** Puts `verdict` on `message`; the one that is there already is taken back. */
  async rate(message, verdict) {
    const before = message.feedback;
    const after = verdict === before ? null : verdict;
    this.show(message, after);
    await this.keep(
      () => (after ? rateMessage(message.id, after) : unrateMessage(message.id)),
      () => this.show(message, before),
    );
    if (message.feedback === after) this.store.announce("rated", message);
  }

  /** Says why, beside the verdict that is there. True when it was kept. */
  explain(message, reason) {
    return this.keep(() => rateMessage(message.id, message.feedback, reason));
  }

  async keep(ask, undo = () => {}) {
    try {
      await ask();
      return true;
    } catch {
      undo();
      this.store.announce("notice", { code: "not_saved" });
      return false;
    }
  }

  show(message, feedback) {
    message.feedback = feedback;
    this.store.conversation.numChanges += 1;
    this.store.announce("answer", message);
  }
}
