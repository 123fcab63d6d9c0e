// A thumb up or down on an answer, and what it does, in words. Knows no network: `rate` keeps the verdict.

import { el, iconButton } from "./dom.js";
import { t } from "./i18n.js";

const RATED_STATES = new Set(["complete", "stopped"]);

/** Both thumbs and the words about the one that was given; nothing for an answer that came to nothing. */
export function thumbs(message, rate) {
  if (!RATED_STATES.has(message.state)) return [];
  const thumb = (verdict) =>
    iconButton(`thumb-${verdict}`, t(`thumb.${verdict}`), () => rate(message, verdict), {
      "aria-pressed": String(message.feedback === verdict),
    });
  const words = ratedWords(message);
  return [thumb("up"), thumb("down"), words ? el("span", { className: "rated" }, words) : null];
}

/** What a thumb did: one down on a stored answer keeps that from this question. */
export function ratedWords({ feedback, generation }) {
  if (!feedback) return "";
  const isStored = Boolean(generation) && generation.origin !== "model";
  return t(feedback === "down" && isStored ? "rated.down.stored" : `rated.${feedback}`);
}
