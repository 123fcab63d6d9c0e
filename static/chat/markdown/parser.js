// Markdown text to tokens. Raw HTML is not a language here: angle brackets stay text. Knows no DOM.

import MarkdownIt from "../../vendor/markdown-it/markdown-it.esm.min.mjs";

const markdown = new MarkdownIt({ html: false, linkify: true, breaks: true });
// Reference definitions would vanish from the text and could change blocks above them; underlined headings would
// turn a paragraph into a heading when the next line begins. Without both, a finished block stays as it is.
markdown.disable(["reference", "lheading"]);
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
markdown.inline.ruler.before("escape", "formula", formula);

const FORMULA_ENDS = { "\\(": "\\)", "\\[": "\\]", $$: "$$" };

/** Formulas keep their source, delimiters included. A single dollar is money, not a formula. */
function formula(state, silent) {
  const open = state.src.slice(state.pos, state.pos + 2);
  const close = FORMULA_ENDS[open];
  if (!close) return false;
  const end = state.src.indexOf(close, state.pos + 2);
  if (end < 0 || end + 2 > state.posMax) return false;
  if (!silent) state.push("formula", "", 0).content = state.src.slice(state.pos, end + 2);
  state.pos = end + 2;
  return true;
}

export function parse(source) {
  return markdown.parse(source, {});
}

/**
 * The top-level blocks of `tokens`: [{ line, itemLines, tokens }]. `line` is the first source line of the block,
 * `itemLines` those of its items when it is a list.
 */
export function blocksOf(tokens) {
  const blocks = [];
  let depth = 0;
  for (const token of tokens) {
    if (depth === 0) blocks.push({ line: token.map[0], itemLines: [], tokens: [] });
    if (depth === 1 && token.type === "list_item_open") blocks.at(-1).itemLines.push(token.map[0]);
    blocks.at(-1).tokens.push(token);
    depth += token.nesting;
  }
  return blocks;
}
