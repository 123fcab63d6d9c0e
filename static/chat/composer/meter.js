// How much of the model's window the shown branch fills, from the last answer that the model made. A small ring.

import { el } from "../parts/dom.js";
import { formatNumber, t } from "../parts/i18n.js";
import { modelOf } from "../state/models.js";
import { pathTo } from "../state/tree.js";

const SVG = "http://www.w3.org/2000/svg";
const RADIUS = 8;
const LEAST_SHOWN = 0.03;
const AROUND = 2 * Math.PI * RADIUS;

/** { used, most, trimmed } of the shown branch, or null while nothing is known. */
export function windowOf({ messages, leaf }, max_context) {
  const made = pathTo(messages, leaf).map(({ generation }) => generation).filter((generation) => generation?.prompt_tokens);
  const last = made.at(-1);
  if (!last || !max_context) return null;
  return { used: Math.min(max_context, last.prompt_tokens + last.generated_tokens), most: max_context, trimmed: last.trimmed_messages ?? 0 };
}

export const windowWords = ({ used, most, trimmed }) =>
  `${t("window", { used: formatNumber(used), most: formatNumber(most) })} ${t(trimmed ? "window.trimmed" : "window.hint")}`;

/** A button with the ring; `act` opens what explains it. */
export class Meter {
  constructor(store, act) {
    this.store = store;
    this.arc = circle("arc");
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 20 20");
    svg.setAttribute("aria-hidden", "true");
    svg.append(circle("ground"), this.arc);
    this.node = el("button", { type: "button", className: "icon-button meter", hidden: true, onclick: act }, svg);
    for (const part of ["conversation", "thread", "answer", "setup"]) store.on(part, () => this.draw());
  }

  draw() {
    const filled = windowOf(this.store.conversation, modelOf(this.store)?.max_context);
    this.node.hidden = !filled;
    if (!filled) return;
    const share = Math.max(filled.used / filled.most, LEAST_SHOWN);
    this.arc.style.strokeDasharray = `${share * AROUND} ${AROUND}`;
    this.node.classList.toggle("far-from-full", share < 0.5 && filled.trimmed === 0);
    this.node.classList.toggle("full", share >= 0.9 || filled.trimmed > 0);
    this.node.title = windowWords(filled);
  }
}

function circle(name) {
  const node = document.createElementNS(SVG, "circle");
  node.setAttribute("class", name);
  for (const at of ["cx", "cy"]) node.setAttribute(at, "10");
  node.setAttribute("r", String(RADIUS));
  return node;
}
