// What is shown until an answer has words: the place in the queue, then how much is read. Its height never changes.

import { el } from "../parts/dom.js";
import { formatNumber, t } from "../parts/i18n.js";

export class WaitingView {
  constructor() {
    this.words = el("span", {});
    this.done = el("i", {});
    this.node = el("div", { className: "waiting", hidden: true }, this.words, el("div", { className: "hairline" }, this.done));
  }

  /** `live` is what the server said last, if anything. */
  update(isWaiting, live) {
    this.node.hidden = !isWaiting;
    if (!isWaiting) return;
    const { position, prefill } = live ?? {};
    const words = prefill?.total ? prefillWords(prefill) : queueWords(position);
    if (this.words.textContent !== words) this.words.textContent = words;
    this.done.style.transform = `scaleX(${prefill?.total ? Math.min(1, prefill.done / prefill.total) : 0})`;
  }
}

const prefillWords = ({ done, total }) => t("waiting.prefill", { done: formatNumber(done), total: formatNumber(total) });

/** `position` answers are ahead in the queue; unknown before the engine said so. */
function queueWords(position) {
  if (position === null || position === undefined) return t("waiting.model");
  return position === 0 ? t("waiting.next") : t("waiting.queue", { count: position, n: position });
}
