// An answer: its growing text, what is shown while it waits, and its foot when it has ended.

import { MarkdownView } from "../markdown/view.js";
import { beforePaint, el } from "../parts/dom.js";
import { t } from "../parts/i18n.js";
import { isLive } from "../state/tree.js";
import { AnswerFoot } from "./foot.js";
import { WaitingView } from "./waiting.js";

// A parse that takes long rests three times as long, so that the page stays quick with very long blocks.
const REST = 3;
const LONG_MS = 8;

export class AnswerView {
  constructor(message, actions) {
    this.actions = actions;
    this.waiting = new WaitingView();
    this.foot = new AnswerFoot(actions);
    const body = el("div", { className: "text" });
    this.node = el("article", { className: "answer", "aria-label": t("answer") }, el("h2", { className: "unseen" }, t("answer")), body, this.waiting.node, this.foot.node);
    this.node.classList.toggle("stored", !isLive(message));
    this.markdown = new MarkdownView(body);
    this.restUntil = 0;
    this.draw = () => this.drawText();
  }

  update(message, live) {
    this.message = message;
    const isGrowing = isLive(message);
    this.node.classList.toggle("live", isGrowing);
    // One that goes on has words already and may wait all the same.
    this.waiting.update(isGrowing && (!message.text || live?.state === "queued"), live);
    if (!isGrowing) {
      this.markdown.update(message.text, true);
      this.foot.draw(message);
      return;
    }
    this.foot.clear();
    if (message.text) beforePaint(this.draw);
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
}
