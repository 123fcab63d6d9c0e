// Messages beside each other: which one of how many this is, and the ways to its neighbours.

import { el, iconButton } from "../parts/dom.js";
import { t } from "../parts/i18n.js";

/** Nothing for a message that stands alone. `show(id, instead)` shows another one. */
export function variantRow({ id, role, variants }, show) {
  if (!variants || variants.length < 2) return null;
  const kind = role === "assistant" ? "answer" : "question";
  const place = variants.indexOf(id);
  const step = (by, name, label) =>
    iconButton(name, t(label), () => show(variants[place + by], id), { disabled: !variants[place + by], "data-act": name });
  const count = el("span", { "aria-label": t(`variants.${kind}`, { n: place + 1, total: variants.length }) }, `${place + 1}/${variants.length}`);
  return el("span", { className: "variants" }, step(-1, "left", `variant.previous.${kind}`), count, step(1, "right", `variant.next.${kind}`));
}
