// How a template's text is shown where there is room for a line or two: its variables by their names, without braces.

import { el } from "../parts/dom.js";
import { pieces } from "./variables.js";

const MOST_CHARS = 200;

export function excerpt(body) {
  return el("span", {}, ...pieces(body.slice(0, MOST_CHARS)).map(([words, isName]) => (isName ? el("var", {}, words) : words)));
}
