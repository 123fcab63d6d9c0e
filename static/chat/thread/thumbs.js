// A thumb up or down on an answer, what it does in words, and the reason, for who wants to give one. Knows no network.

import { el, iconButton } from "../parts/dom.js";
import { t } from "../parts/i18n.js";

const RATED_STATES = new Set(["complete", "stopped"]);
const MAX_REASON_CHARS = 500;

export class Thumbs {
  constructor(actions) {
    this.actions = actions;
    this.asksWhy = false; // for the thumb of this moment only
  }

  /** Both thumbs; none for an answer that came to nothing. The one that is there is pressed again to take it back. */
  buttons(message) {
    if (!RATED_STATES.has(message.state)) return [];
    return ["up", "down"].map((verdict) =>
      iconButton(`thumb-${verdict}`, t(`thumb.${verdict}`), () => this.press(message, verdict), {
        "aria-pressed": String(message.feedback === verdict),
        "data-act": verdict,
      }),
    );
  }

  press(message, verdict) {
    this.asksWhy = message.feedback !== verdict;
    this.actions.rate(message, verdict);
  }

  /** A field for the reason, after a thumb was given; it asks for nothing and goes with Escape. */
  reason(message) {
    if (!this.asksWhy || !message.feedback) return null;
    const label = t(`reason.${message.feedback}`);
    const field = el("input", { maxLength: MAX_REASON_CHARS, autocomplete: "off", placeholder: label, "aria-label": label });
    const form = el("form", { className: "reason" }, field, el("button", {}, t("send")));
    const close = (words) => {
      this.asksWhy = false;
      form.replaceWith(...(words ? [el("p", { className: "ended" }, words)] : []));
    };
    form.addEventListener("keydown", (event) => event.key === "Escape" && !event.isComposing && close());
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const text = field.value.trim();
      if (!text) close();
      else if (await this.actions.explain(message, text)) close(t("reason.kept"));
    });
    return form;
  }
}

/** What a thumb did: one down on a stored answer keeps that from this question. "" for none. */
export function ratedWords({ feedback, generation }) {
  if (!feedback) return "";
  const isStored = Boolean(generation) && generation.origin !== "model";
  return t(feedback === "down" && isStored ? "rated.down.stored" : `rated.${feedback}`);
}
