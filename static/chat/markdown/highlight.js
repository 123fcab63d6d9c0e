// Colours for code that is complete, once, when the reader comes near. highlight.js and the language's grammar are
// fetched then. It finds a tree of scopes, which becomes elements here: nothing of it is ever markup in a string.

import { el } from "../parts/dom.js";

const VENDOR = new URL("../../vendor/highlight.js/", import.meta.url);
// Longer ones would hold the page up; they stay plain.
const MAX_CHARS = 20_000;
const NEAR = "400px 0px";

const names = (language, ...others) => [language, ...others].map((name) => [name, language]);
const LANGUAGES = new Map([
  ...names("bash", "sh", "shell", "zsh", "console"),
  ...names("c", "h"),
  ...names("cpp", "c++", "cc", "hpp"),
  ...names("csharp", "c#", "cs"),
  ...names("css"),
  ...names("diff", "patch"),
  ...names("go", "golang"),
  ...names("java"),
  ...names("javascript", "js", "jsx", "mjs"),
  ...names("json", "jsonc"),
  ...names("php"),
  ...names("python", "py", "python3"),
  ...names("ruby", "rb"),
  ...names("rust", "rs"),
  ...names("sql", "postgresql", "mysql", "sqlite"),
  ...names("typescript", "ts", "tsx"),
  ...names("xml", "html", "svg", "vue"),
  ...names("yaml", "yml"),
]);

// The first word of a scope, and the colour that it gets.
const COLOURS = {
  keyword: "keyword", "selector-tag": "keyword", tag: "keyword", name: "keyword",
  string: "string", regexp: "string", char: "string", addition: "added",
  number: "literal", literal: "literal", symbol: "literal", bullet: "literal",
  comment: "comment", quote: "comment", doctag: "comment", meta: "comment",
  built_in: "type", type: "type", class: "type",
  title: "title", section: "title", function: "title",
  attr: "name", attribute: "name", property: "name", variable: "name", "template-variable": "name",
  "selector-class": "name", "selector-id": "name", "selector-attr": "name", "selector-pseudo": "name",
  deletion: "removed",
};

let core = null;
const grammars = new Map();
const seen = new WeakSet();
const near = new IntersectionObserver(arrived, { scrollMargin: NEAR });

/** Colours the code in `nodes`, which will not change any more, as soon as it is near to what is shown. */
export function colourWhenNear(nodes) {
  for (const node of nodes) {
    if (node.nodeType !== Node.ELEMENT_NODE) continue;
    for (const block of node.matches(".code") ? [node] : node.querySelectorAll(".code")) {
      if (seen.has(block) || !LANGUAGES.has(block.dataset.language)) continue;
      seen.add(block);
      near.observe(block);
    }
  }
}

function arrived(entries) {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    colour(target).catch(() => seen.delete(target)); // plain code is readable as well
  }
}

async function colour(block) {
  const code = block.querySelector("code");
  const text = code.textContent;
  const language = LANGUAGES.get(block.dataset.language);
  if (text.length > MAX_CHARS) return;
  const hljs = await withGrammar(language);
  const { _emitter: found } = hljs.highlight(text, { language, ignoreIllegals: true });
  if (code.textContent === text) code.replaceChildren(...found.rootNode.children.flatMap(coloured));
}

async function withGrammar(language) {
  core ??= import(new URL("core.min.js", VENDOR));
  if (!grammars.has(language)) grammars.set(language, import(new URL(`languages/${language}.min.js`, VENDOR)));
  const [{ default: hljs }, { default: grammar }] = await Promise.all([core, grammars.get(language)]);
  if (!hljs.getLanguage(language)) hljs.registerLanguage(language, grammar);
  return hljs;
}

/** A node of the tree is a text, or { scope, children }. */
function coloured(node) {
  if (typeof node === "string") return document.createTextNode(node);
  const children = node.children.flatMap(coloured);
  const colour = COLOURS[node.scope?.split(".")[0]];
  return colour ? el("span", { className: `hl-${colour}` }, ...children) : children;
}
