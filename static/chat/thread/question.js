// A question: the person's own words, on their way, accepted, or refused with a reason and one way on; and as a field.

import { byId, el, iconButton } from "../parts/dom.js";
import { t } from "../parts/i18n.js";
import { hasTouchOnly } from "../parts/keys.js";
import { troubleText } from "../parts/trouble.js";
import { editForm } from "./edit.js";
import { moment } from "./moment.js";
import { variantRow } from "./variants.js";

// Sending these again would only be refused again: the text goes back to be changed.
const NEEDS_EDIT = new Set(["message_too_long", "context_length_exceeded", "invalid_request", "invalid_text"]);

export class QuestionView {
  constructor(message, actions) {
    this.actions = actions;
    this.said = el("div", { className: "said" }, message.text);
    this.note = el("div", { className: "note", hidden: true });
    this.row = el("div", { className: "actions" });
    this.node = el("article", { className: "question", "aria-label": t("you") }, el("h2", { className: "unseen" }, t("you")), this.said, this.note, this.row);
    this.update(message);
  }

  /** `message` may be an outbox entry: still on its way, or refused with a reason. */
  update(message) {
    this.message = message;
    this.node.classList.toggle("pending", !message.id && !message.refusal);
    this.drawNote(message);
    this.drawRow(message);
  }

  drawNote({ refusal, client_message_id }) {
    this.note.hidden = !refusal;
    if (!refusal) return;
    const button = NEEDS_EDIT.has(refusal.code)
      ? el("button", { type: "button", onclick: () => this.actions.takeBack(client_message_id) }, t("edit"))
      : el("button", { type: "button", onclick: () => this.actions.resend(client_message_id) }, t("try_again"));
    this.note.replaceChildren(el("span", {}, troubleText(refusal)), button);
  }

  drawRow(message) {
    const { id, text, variants, created_at } = message;
    const key = JSON.stringify([id, variants]);
    if (key === this.rowKey) return;
    this.rowKey = key;
    const nodes = [
      created_at && moment(created_at),
      variantRow(message, this.actions.showVariant),
      iconButton("copy", t("copy"), (event) => this.actions.copy(text, event.currentTarget)),
      id && iconButton("pen", t("edit"), () => this.edit(text), { "data-act": "edit" }),
    ];
    this.row.replaceChildren(...nodes.filter(Boolean));
  }

  /** The words become a field with `text` in it; sent, they are another question beside this one. */
  edit(text) {
    const close = () => {
      this.node.classList.remove("editing");
      form.replaceWith(this.said);
      this.row.querySelector("[data-act=edit]").focus();
    };
    const send = (changed) => {
      close();
      this.actions.edit(this.message, changed);
      if (!hasTouchOnly()) byId("message").focus();
    };
    const keep = async (changed) => {
      close();
      if (!(await this.actions.reword(this.message, changed))) this.edit(changed); // what was typed is not lost
    };
    const { form, open } = editForm(text, this.actions.maxChars, { send, keep, close });
    this.node.classList.add("editing");
    this.said.replaceWith(form);
    open();
  }
}
