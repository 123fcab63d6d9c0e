// Says for a while what was done, and takes it back when asked to.

import { el } from "../parts/dom.js";
import { t } from "../parts/i18n.js";

const OFFERED_MS = 8000;

export class Undo {
  constructor() {
    this.node = el("div", { className: "undo", role: "status" });
  }

  /** `back` takes back what `words` tell. */
  offer(words, back) {
    clearTimeout(this.timer);
    const act = () => {
      this.end();
      back();
    };
    this.node.replaceChildren(el("span", {}, words), el("button", { type: "button", className: "quiet", onclick: act }, t("undo")));
    this.timer = setTimeout(() => this.end(), OFFERED_MS);
  }

  end() {
    this.node.replaceChildren();
  }
}
