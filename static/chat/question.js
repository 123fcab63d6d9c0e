// A question: the person's own words, on their way, accepted, or refused with a reason and one way on.

import { el, iconButton } from "./dom.js";
import { errorText, t } from "./i18n.js";

// Sending these again would only be refused again: the text goes back to be changed.
const NEEDS_EDIT = new Set(["message_too_long", "context_length_exceeded", "invalid_request", "invalid_text"]);

export class QuestionView {
  constructor(message, actions) {
    this.note = el("div", { className: "note", hidden: true });
    this.node = el(
      "article",
      { className: "question", "aria-label": t("you") },
      el("div", { className: "said" }, message.text),
      this.note,
      el("div", { className: "actions" }, iconButton("copy", t("copy"), (event) => actions.copy(message.text, event.currentTarget))),
    );
    this.actions = actions;
    this.update(message);
  }

  /** `message` may be an outbox entry: still on its way, or refused with a reason. */
  update(message) {
    const isPending = "client_message_id" in message && !message.id;
    this.node.classList.toggle("pending", isPending && !message.refusal);
    this.note.hidden = !message.refusal;
    if (!message.refusal) return;
    const { code, retry_after_s } = message.refusal;
    const button = NEEDS_EDIT.has(code)
      ? el("button", { type: "button", onclick: () => this.actions.takeBack(message.client_message_id) }, t("edit"))
      : el("button", { type: "button", onclick: () => this.actions.resend(message.client_message_id) }, t("try_again"));
    this.note.replaceChildren(el("span", {}, errorText(code, { seconds: Math.ceil(retry_after_s ?? 5) })), button);
  }
}
