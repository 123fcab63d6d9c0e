// Tokens to elements, by a fixed table of tags. Every text becomes a text node; unknown tokens show their source.

import { el, icon } from "../parts/dom.js";
import { codeBlock } from "./code.js";
import { formula, openFormula } from "./math.js";

// Headings of an answer sit below the page's own two levels.
const TAGS = {
  h1: "h3", h2: "h4", h3: "h5", h4: "h6", h5: "h6", h6: "h6",
  p: "p", ul: "ul", ol: "ol", li: "li", blockquote: "blockquote", hr: "hr",
  table: "table", thead: "thead", tbody: "tbody", tr: "tr", th: "th", td: "td",
  em: "em", strong: "strong", s: "s",
};
const SAFE_LINK = /^(https?:|mailto:)/i;

/**
 * The elements of `tokens`, one for each top-level block. Items always hold paragraphs, so that a blank line further
 * down, which makes a list loose, changes nothing above it.
 */
export function build(tokens) {
  const root = document.createDocumentFragment();
  const open = [root];
  for (const token of tokens) {
    const parent = open.at(-1);
    if (token.type === "inline") buildInline(token.children, parent);
    else if (token.nesting === 1) open.push(openBlock(token, parent));
    else if (token.nesting === -1) open.pop();
    else parent.append(leafBlock(token));
  }
  return [...root.childNodes];
}

function openBlock(token, parent) {
  const node = el(TAGS[token.tag] ?? "div");
  if (token.tag === "ol" && token.attrGet("start")) node.start = Number(token.attrGet("start"));
  const align = /text-align:(left|center|right)/.exec(token.attrGet("style") ?? "");
  if (align) node.classList.add(`align-${align[1]}`);
  // A wide table scrolls in a frame of its own, so that the page never does.
  parent.append(token.tag === "table" ? el("div", { className: "table", tabIndex: 0 }, node) : node);
  return node;
}

function leafBlock(token) {
  if (token.type === "fence" || token.type === "code_block") return codeBlock(token.info.trim().split(/\s/)[0], token.content);
  if (token.type === "hr") return el("hr");
  if (token.type === "formula_block") return token.meta.isClosed ? formula(token.content) : openFormula(token.content);
  return document.createTextNode(token.content);
}

function buildInline(tokens, parent) {
  const open = [parent];
  for (const token of tokens) {
    const top = open.at(-1);
    if (token.nesting === -1) open.pop();
    else if (token.nesting === 1) {
      const node = token.type === "link_open" ? link(token.attrGet("href")) : el(TAGS[token.tag] ?? "span");
      top.append(node);
      open.push(node);
    } else top.append(inlineLeaf(token));
  }
}

function inlineLeaf(token) {
  if (token.type === "softbreak" || token.type === "hardbreak") return el("br");
  if (token.type === "code_inline") return el("code", {}, token.content);
  if (token.type === "formula") return formula(token.content);
  if (token.type === "image") return imageLink(token);
  return document.createTextNode(token.content);
}

function link(href) {
  if (!SAFE_LINK.test(href)) return el("span");
  return el("a", { href, rel: "noopener nofollow", target: "_blank" });
}

/** Pictures of the model never load by themselves (their address could carry the chat away): they become links. */
function imageLink(token) {
  const node = link(token.attrGet("src"));
  const [first = "", ...rest] = token.content || token.attrGet("src");
  // A line may end after the icon: the first character holds it.
  node.append(el("span", { className: "beginning" }, icon("image"), first), rest.join(""));
  node.classList.add("image-link");
  return node;
}
