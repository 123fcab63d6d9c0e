// Formulas as elements. Temml, which reads TeX, is fetched when the first formula is seen; until then, and where a
// formula cannot be read, its source is shown. What it makes are elements without ids, links and pictures.

import { el } from "../parts/dom.js";

const VENDOR = new URL("../../vendor/temml/", import.meta.url);
const MAX_CHARS = 5_000;
const MAX_KNOWN = 300;
// Sizes in em that a formula may ask for; a macro that goes round in circles is stopped.
const LIMITS = { maxSize: [20, 20], maxExpand: 500 };
const UNWANTED = ["id", "href", "src", "title"];

let temml = null;
let loading = null;
const waiting = new Set(); // nodes that show their source until Temml is there
const known = new Map(); // source to what it became: a paragraph that grows is built anew with each word

/** The formula `source`, which stands in its delimiters. */
export function formula(source) {
  const isDisplay = source.startsWith("$$") || source.startsWith("\\[");
  const node = el(isDisplay ? "div" : "span", { className: isDisplay ? "formula display" : "formula", "data-source": source }, source);
  if (temml) typeset(node, isDisplay);
  else {
    waiting.add(node);
    load();
  }
  return node;
}

/** A formula that has begun and not ended yet. */
export const openFormula = (source) => el("div", { className: "formula display" }, source);

/** Resolves when everything that is shown is as it stays. */
export const settled = () => loading ?? Promise.resolve();

function load() {
  loading ??= begin().catch(() => {
    loading = null; // the source is there to be read; the next formula asks again
  });
}

async function begin() {
  const module = await import(new URL("temml.mjs", VENDOR));
  document.head.append(el("link", { rel: "stylesheet", href: new URL("Temml-Local.css", VENDOR).href }));
  temml = module.default;
  for (const node of waiting) typeset(node, node.classList.contains("display"));
  waiting.clear();
}

function typeset(node, isDisplay) {
  const { source } = node.dataset;
  if (!known.has(source)) {
    if (known.size >= MAX_KNOWN) known.delete(known.keys().next().value);
    known.set(source, read(source, isDisplay));
  }
  const math = known.get(source);
  if (math) node.replaceChildren(...math.map((part) => part.cloneNode(true)));
}

/** The elements of a formula, or null for one that cannot be read. */
function read(source, isDisplay) {
  const length = source.startsWith("$") && !source.startsWith("$$") ? 1 : 2;
  const tex = source.slice(length, -length);
  if (tex.length > MAX_CHARS) return null;
  const box = el("div");
  try {
    temml.render(tex, box, { displayMode: isDisplay, throwOnError: true, trust: false, wrap: "tex", ...LIMITS });
  } catch {
    return null;
  }
  for (const node of box.querySelectorAll("*")) for (const name of UNWANTED) node.removeAttribute(name);
  return box.querySelector("a, img") ? null : [...box.childNodes];
}
