// Markdown text to tokens. Raw HTML is not a language here: angle brackets stay text. Knows no DOM.

import MarkdownIt from "../../vendor/markdown-it/markdown-it.esm.min.mjs";
import { formulas } from "./formulas.js";

const markdown = new MarkdownIt({ html: false, linkify: true, breaks: true });
// Reference definitions would vanish from the text and could change blocks above them; underlined headings would
// turn a paragraph into a heading when the next line begins. Without both, a finished block stays as it is.
markdown.disable(["reference", "lheading"]);
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
markdown.use(formulas);

/** The tokens of `source`; `isOpen` says that it goes on. */
export function parse(source, isOpen = false) {
  return markdown.parse(source, { isOpen });
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
