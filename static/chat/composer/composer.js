// Where a question is written. The text leaves the field before anything is awaited; drafts outlive a reload.

import { byId } from "../parts/dom.js";
import { formatNumber, t } from "../parts/i18n.js";
import { cancels, hasTouchOnly, sendsMessage, sendsWith } from "../parts/keys.js";
import { say } from "../parts/say.js";
import { room } from "./count.js";

export class Composer {
  constructor(store, asker, drafts) {
    Object.assign(this, { store, asker, drafts, listeners: [] });
    this.field = byId("message");
    this.button = byId("send");
    this.hint = byId("composer-hint");
    this.quietHint = this.hint.textContent;
    // What was written before the scripts were there is a draft as well.
    if (this.field.value) drafts.keep(store.boot.conversation, this.field.value);
    this.setKeys();
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

  /** Gives keys to `listener(event)` first; it says true when a key was for it. */
  offerKeys(listener) {
    this.listeners.push(listener);
  }

  /** The keyboard of a phone shows what its Enter does. */
  setKeys() {
    this.field.enterKeyHint = sendsWith().length > 1 ? "enter" : "send";
  }

  key(event) {
    if (this.listeners.some((listener) => listener(event))) return;
    if (cancels(event) && this.asker.isBusy()) this.asker.stop();
    if (!sendsMessage(event)) return;
    event.preventDefault();
    this.submit();
  }

  submit() {
    const text = this.field.value;
    if (!text.trim()) return;
    if (this.room().left < 0) {
      say(this.hint.textContent);
      return;
    }
    if (this.asker.isBusy()) {
      this.hint.textContent = t("composer.wait");
      say(t("composer.wait"));
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
    const { id, is_temporary } = this.store.conversation;
    this.drafts.keep(id, is_temporary ? "" : this.field.value);
    this.resize();
    this.showState();
    this.asker.warmDraft(this.field.value);
  }

  restore() {
    const { id, is_temporary } = this.store.conversation;
    this.field.value = is_temporary ? "" : this.drafts.of(id);
    this.resize();
    this.showState();
    if (!hasTouchOnly()) this.field.focus();
  }

  /** The field grows with its text; the style sheet says how far, and where it can do all of it, it does: measuring here
   * lays out the whole page at each key. */
  resize() {
    if (CSS.supports("field-sizing", "content")) return;
    this.field.style.height = "auto";
    this.field.style.height = `${this.field.scrollHeight}px`;
  }

  room() {
    return room(this.field.value, this.store.boot.limits.max_message_chars);
  }

  showState() {
    const isBusy = this.asker.isBusy();
    const label = t(isBusy ? "stop" : "send");
    this.button.classList.toggle("stop", isBusy);
    this.button.disabled = isBusy ? !this.asker.answering() : !this.field.value.trim() || this.room().left < 0;
    this.button.title = label;
    this.showRoom(isBusy);
  }

  /** How much may still be written, from 80 % on; a text that is too long stays, and says by how much. */
  showRoom(isBusy) {
    const { isShown, left } = this.room();
    this.hint.classList.toggle("bad", left < 0);
    this.field.setAttribute("aria-invalid", String(left < 0));
    if (isShown) this.hint.textContent = left < 0 ? t("composer.too_long", { n: formatNumber(-left) }) : t("composer.room", { n: formatNumber(left) });
    else if (!isBusy) this.hint.textContent = this.quietHint;
  }
}
