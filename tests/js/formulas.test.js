// What is a formula and what is money, whole and while it grows.

import assert from "node:assert/strict";
import { test } from "node:test";

import { parse } from "../../static/chat/markdown/parser.js";

const formulasOf = (source, isOpen = false) =>
  parse(source, isOpen).flatMap((token) => (token.type === "formula_block" ? [token.content] : (token.children ?? []).filter(({ type }) => type === "formula").map(({ content }) => content)));

const MONEY = [
  "Tickets are $8 and $14.",
  "月费 $212 → $37，年省 ~$2,100",
  "US$ 45 mi, R$ 12",
  "`$HOME` and $PATH",
  "It costs 5$ or 6$.",
  "\\$0.75 and \\$3",
  "From $5-$10, or $20/$30",
  "exactly $5$ and $1,000.50$",
  "a $ b $ c",
  "`a$` and $b `c$`",
  "$$$",
  "$$ $$",
  "$a`$",
];

test("money, variables and code are no formulas", () => {
  for (const source of MONEY) assert.deepEqual(formulasOf(source), [], source);
});

test("formulas in a line", () => {
  assert.deepEqual(formulasOf("so $x^2$, $$y$$ and \\(a+b\\) or \\[c\\] too"), ["$x^2$", "$$y$$", "\\(a+b\\)", "\\[c\\]"]);
  assert.deepEqual(formulasOf("设$x$为数，$\\$0.75$"), ["$x$", "$\\$0.75$"]);
  assert.deepEqual(formulasOf("$2 + 3$ and $a_1, b_2$"), ["$2 + 3$", "$a_1, b_2$"]);
});

test("formulas over lines, whatever their lines look like", () => {
  const source = "$$\na = b\n- c\n# d\n$$";
  assert.deepEqual(formulasOf(source), [source]);
  assert.deepEqual(formulasOf(`text\n${source}\nmore`), [source]);
  assert.deepEqual(formulasOf("1. one\n   $$\n   x\n   $$\n2. two"), ["$$\nx\n$$"]);
});

test("a blank line, or words behind the end, make it no block", () => {
  assert.deepEqual(formulasOf("$$\na\n\nb\n$$"), []);
  assert.deepEqual(formulasOf("$$x$$ is a formula"), ["$$x$$"]);
});

test("while it grows, what has begun is held together", () => {
  assert.equal(parse("$$\na = b\n- c\n", true).length, 1);
  assert.deepEqual(parse("$$\na = b\n- c\n", true)[0].meta, { isClosed: false });
  assert.ok(parse("$$\na = b\n- c\n").some(({ type }) => type === "bullet_list_open"));
});
