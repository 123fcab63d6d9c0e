// How the person stands with the quotas, said before a question is refused: from 80 % on, and when nothing is left.

import { request } from "../line/request.js";
import { byId, el, iconButton } from "../parts/dom.js";
import { formatNumber, formatWhen, t } from "../parts/i18n.js";
import { isLive } from "../state/tree.js";
import { tightest } from "./standing.js";

// Many answers may end at once; the counters are asked once.
const ASK_AFTER_MS = 1500;

export class QuotaBanner {
  constructor(store) {
    this.box = byId("quota");
    store.on("connection", () => store.connection === "open" && this.askSoon());
    store.on("answer", (message) => isLive(message) || this.askSoon());
    store.on("thread", () => store.conversation.pending.some(({ refusal }) => refusal?.code === "quota_exceeded") && this.askSoon());
  }

  askSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), ASK_AFTER_MS);
  }

  async ask() {
    const quotas = await request("GET", "/api/quota").catch(() => null);
    if (quotas) this.show(tightest(quotas));
  }

  /** `standing` is { kind, left, limit, resets_at }, or null while there is room. */
  show(standing) {
    const key = standing && `${standing.kind} ${standing.left > 0} ${standing.resets_at}`;
    if (!standing || key === this.dismissed) {
      this.box.hidden = true;
      return;
    }
    const { kind, left, limit, resets_at } = standing;
    const when = formatWhen(new Date(resets_at));
    const words = left > 0 ? t(`quota.low.${kind}`, { left: formatNumber(left), limit: formatNumber(limit), when }) : t(`quota.used_up.${kind}`, { limit: formatNumber(limit), when });
    const close = iconButton("close", t("dismiss"), () => {
      this.dismissed = key;
      this.box.hidden = true;
    });
    if (this.box.dataset.words === words && !this.box.hidden) return; // what stands there is not said again
    this.box.dataset.words = words;
    this.box.replaceChildren(el("span", {}, words), close);
    this.box.hidden = false;
  }
}
