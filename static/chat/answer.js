// An answer: its waiting line, growing text, end state with figures or trouble, and actions.

import { beforePaint, el, icon, iconButton } from "./dom.js";
import { errorText, formatNumber, t } from "./i18n.js";
import { MarkdownView } from "./markdown/view.js";
import { isLive } from "./thread.js";
import { thumbs } from "./thumbs.js";
import { truthLine } from "./truth.js";

// A parse that takes long rests three times as long, so that the page stays quick with very long blocks.
const REST = 3;
const LONG_MS = 8;
// Answers that are complete for the server and may not be for the reader.
const CUT_SHORT = { length: "cut_by_length", repetition: "cut_by_repetition" };

export class AnswerView {
  constructor(message, actions) {
    this.actions = actions;
    this.waiting = el("div", { className: "waiting" });
    this.body = el("div", { className: "text" });
    this.foot = el("div", { className: "foot" });
    this.node = el("article", { className: "answer", "aria-label": t("answer") }, this.waiting, this.body, this.foot);
    this.node.classList.toggle("stored", !isLive(message));
    this.markdown = new MarkdownView(this.body);
    this.restUntil = 0;
    this.draw = () => this.drawText();
    this.update(message);
  }

  update(message, live, variants) {
    Object.assign(this, { message, variants: variants ?? this.variants });
    this.node.classList.toggle("live", isLive(message));
    this.showWaiting(message, live);
    if (isLive(message)) {
      this.footKey = null;
      this.foot.replaceChildren();
      if (message.text) beforePaint(this.draw);
    } else {
      this.markdown.update(message.text, true);
      this.drawFoot();
    }
  }

  drawText() {
    if (!isLive(this.message)) return;
    const began = performance.now();
    if (began < this.restUntil) {
      beforePaint(this.draw);
      return;
    }
    this.markdown.update(this.message.text, false);
    const cost = performance.now() - began;
    this.restUntil = cost > LONG_MS ? began + cost * (REST + 1) : 0;
    this.actions.grown();
  }

  showWaiting(message, live) {
    const isWaiting = isLive(message) && !message.text;
    this.waiting.hidden = !isWaiting;
    if (!isWaiting) return;
    const { position, prefill } = live ?? {};
    if (prefill?.total) this.showPrefill(prefill);
    else this.waiting.replaceChildren(el("span", {}, queueWords(position)), el("div", { className: "hairline" }));
  }

  showPrefill({ done, total }) {
    const line = el("i", {});
    line.style.transform = `scaleX(${Math.min(1, done / total)})`;
    const words = t("waiting.prefill", { done: formatNumber(done), total: formatNumber(total) });
    this.waiting.replaceChildren(el("span", {}, words), el("div", { className: "hairline" }, line));
  }

  drawFoot() {
    const { message, variants } = this;
    const { state, generation, feedback } = message;
    const key = JSON.stringify([state, generation, feedback, variants?.map((variant) => variant.id)]);
    if (key === this.footKey) return;
    this.footKey = key;
    const nodes = [];
    if (state === "failed" || state === "interrupted") nodes.push(this.trouble());
    else if (state === "stopped") nodes.push(el("p", { className: "stopped" }, t("stopped")));
    const cut = CUT_SHORT[generation?.finish_reason];
    if (cut) nodes.push(el("p", { className: "stopped" }, t(cut)));
    if (generation?.origin && state !== "failed" && state !== "interrupted") nodes.push(truthLine(generation));
    nodes.push(this.actionRow());
    this.foot.replaceChildren(...nodes);
  }

  trouble() {
    const { state, text, generation, id } = this.message;
    const kept = t(text ? "kept.part" : "kept.question");
    const words = errorText(generation?.error_code || generation?.finish_reason, { seconds: 5 }, `error.${state}`);
    const button = el("button", { type: "button", onclick: () => this.actions.regenerate(id) }, icon("again"), t("try_again"));
    return el("div", { className: "note", role: "alert" }, el("span", {}, `${words} ${kept}`), button);
  }

  actionRow() {
    const { id, generation, state } = this.message;
    const hasTrouble = state === "failed" || state === "interrupted";
    const again = generation && generation.origin !== "model" ? t("answer_fresh") : t("answer_again");
    return el(
      "div",
      { className: "actions" },
      iconButton("copy", t("copy"), (event) => this.actions.copy(this.message.text, event.currentTarget)),
      hasTrouble ? null : iconButton("again", again, () => this.actions.regenerate(id)),
      this.variantRow(),
      ...thumbs(this.message, this.actions.rate),
    );
  }

  variantRow() {
    const { variants, message } = this;
    if (!variants || variants.length < 2) return null;
    const place = variants.findIndex((variant) => variant.id === message.id);
    const step = (by, name, label) => iconButton(name, label, () => this.actions.showVariant(variants[place + by].id), { disabled: !variants[place + by] });
    const count = el("span", { "aria-label": t("variants", { n: place + 1, total: variants.length }) }, `${place + 1}/${variants.length}`);
    return el("span", { className: "variants" }, step(-1, "left", t("variant.previous")), count, step(1, "right", t("variant.next")));
  }
}

/** `position` answers are ahead in the queue; unknown before the engine said so. */
function queueWords(position) {
  if (position === null || position === undefined) return t("waiting.model");
  return position === 0 ? t("waiting.next") : t("waiting.queue", { count: position, n: position });
}
