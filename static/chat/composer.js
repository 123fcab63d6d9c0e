// Where a question is written. The text leaves the field before anything is awaited; drafts outlive a reload.

import { byId } from "./dom.js";
import { t } from "./i18n.js";
import { hasTouchOnly, sendsMessage } from "./keys.js";

export class Composer {
  constructor(store, asker, drafts) {
    Object.assign(this, { store, asker, drafts });
    this.field = byId("message");
    this.button = byId("send");
    this.hint = byId("composer-hint");
    this.quietHint = this.hint.textContent;
    // What was written before the scripts were there is a draft as well.
    if (this.field.value) drafts.keep(store.boot.conversation, this.field.value);
    this.field.maxLength = store.boot.limits.max_message_chars;
    this.field.enterKeyHint = hasTouchOnly() ? "enter" : "send";
    this.field.addEventListener("keydown", (event) => this.key(event));
    this.field.addEventListener("input", () => this.changed());
    this.field.addEventListener("focus", () => asker.warm());
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.asker.isBusy()) this.asker.stop();
      else this.submit();
    });
    for (const part of ["thread", "answer"]) store.on(part, () => this.showState());
    store.on("conversation", () => this.restore());
  }

  key(event) {
    if (event.key === "Escape" && this.asker.isBusy()) this.asker.stop();
    if (!sendsMessage(event)) return;
    event.preventDefault();
    this.submit();
  }

  submit() {
    const text = this.field.value;
    if (!text.trim()) return;
    if (this.asker.isBusy()) {
      this.hint.textContent = t("composer.wait");
      return;
    }
    // Kept first, without any wait: where the browser keeps nothing (full, forbidden), the text stays in the field.
    this.asker.ask(text);
    this.fill("");
  }

  /** Puts `text` into the field, as a draft of the shown conversation. */
  fill(text) {
    this.field.value = text;
    this.changed();
  }

  start(text) {
    this.fill(text);
    this.field.focus();
  }

  changed() {
    this.drafts.keep(this.store.conversation.id, this.field.value);
    this.resize();
    this.showState();
  }

  restore() {
    this.field.value = this.drafts.of(this.store.conversation.id);
    this.resize();
    this.showState();
    if (!hasTouchOnly()) this.field.focus();
  }

  /** The field grows with its text; the style sheet says how far. */
  resize() {
    this.field.style.height = "auto";
    this.field.style.height = `${this.field.scrollHeight}px`;
  }

  showState() {
    const isBusy = this.asker.isBusy();
    const label = t(isBusy ? "stop" : "send");
    this.button.classList.toggle("stop", isBusy);
    this.button.disabled = isBusy ? !this.asker.answering() : !this.field.value.trim();
    this.button.title = label;
    this.button.setAttribute("aria-label", label);
    if (!isBusy) this.hint.textContent = this.quietHint;
  }
}
