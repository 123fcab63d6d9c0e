// What stands under an answer that has ended: trouble or how it ended, the truth line, and what can be done with it.

import { el, icon, iconButton } from "../parts/dom.js";
import { t } from "../parts/i18n.js";
import { troubleText } from "../parts/trouble.js";
import { moment } from "./moment.js";
import { ratedWords, Thumbs } from "./thumbs.js";
import { truthLine } from "./truth.js";
import { variantRow } from "./variants.js";

const TROUBLES = new Set(["failed", "interrupted"]);

export class AnswerFoot {
  constructor(actions) {
    this.actions = actions;
    this.thumbs = new Thumbs(actions);
    this.node = el("div", { className: "foot" });
  }

  clear() {
    this.key = null;
    this.node.replaceChildren();
  }

  /** Drawn anew only when something of it changed; the focus stays on the same button. */
  draw(message) {
    const { state, generation, feedback, variants } = message;
    const key = JSON.stringify([state, generation, feedback, variants]);
    if (key === this.key) return;
    this.key = key;
    const focused = this.node.contains(document.activeElement) ? document.activeElement.dataset.act : null;
    const parts = [...this.endOf(message), this.actionRow(message), this.thumbs.reason(message)];
    this.node.replaceChildren(...parts.filter(Boolean));
    if (focused) this.node.querySelector(`[data-act="${focused}"]`)?.focus();
  }

  /** How it ended, where that needs a word, and where it came from. */
  endOf(message) {
    const { state, generation } = message;
    if (TROUBLES.has(state)) return [this.trouble(message)];
    const stopped = state === "stopped" ? el("p", { className: "ended" }, t("stopped")) : null;
    return [stopped, this.cutShort(message), generation?.origin ? truthLine(generation) : null];
  }

  /** Answers that are complete for the server and may not be for the reader. */
  cutShort(message) {
    const reason = message.generation?.finish_reason;
    if (reason === "repetition") return el("p", { className: "ended" }, t("cut_by_repetition"));
    if (reason !== "length") return null;
    const button = el("button", { type: "button", onclick: () => this.actions.goOn(message) }, t("go_on"));
    return el("p", { className: "ended" }, el("span", {}, t("cut_by_length")), button);
  }

  trouble({ state, text, generation, id }) {
    const kept = t(text ? "kept.part" : "kept.question");
    const words = troubleText({ code: generation?.error_code || generation?.finish_reason }, `error.${state}`);
    const button = el("button", { type: "button", onclick: () => this.actions.regenerate(id) }, icon("again"), t("try_again"));
    return el("div", { className: "note", role: "alert" }, el("span", {}, `${words} ${kept}`), button);
  }

  actionRow(message) {
    const { text, created_at } = message;
    const words = ratedWords(message);
    const parts = [
      iconButton("copy", t("copy"), (event) => this.actions.copy(text, event.currentTarget), { "data-act": "copy" }),
      this.again(message),
      variantRow(message, this.actions.showVariant),
      ...this.thumbs.buttons(message),
      moment(created_at),
      words && el("span", { className: "rated" }, words),
    ];
    return el("div", { className: "actions" }, ...parts.filter(Boolean));
  }

  /** Another answer. That it is the model's this time is worth saying where the last one was the cache's. */
  again({ id, state, generation }) {
    if (TROUBLES.has(state)) return null;
    const act = () => this.actions.regenerate(id);
    if (!generation || generation.origin === "model") return iconButton("again", t("answer_again"), act, { "data-act": "again" });
    return el("button", { type: "button", className: "quiet", title: t("answer_fresh.why"), onclick: act, "data-act": "again" }, icon("again"), t("answer_fresh"));
  }
}
