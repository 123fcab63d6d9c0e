// Which template is offered first.

import assert from "node:assert/strict";
import { test } from "node:test";

import { fuzzy, intent, offered, ranked, terms } from "../../static/chat/composer/rank.js";

const NOW = 1_800_000_000_000;
const DAY = 86_400_000;
const template = (id, title, body = "", more = {}) => ({ id, title, body, language: "en", use_count: 0, ...more });
const TRANSLATE = template(1, "Translate", "Translate into {{language}}: {{text}}");
const SUMMARISE = template(2, "Summarise", "Sum up this text in three points: {{text}}");
const FANYI = template(3, "翻译成英文", "把下面的文字翻译成英文：{{text}}", { language: "zh-hans" });
const WEEKLY = template(4, "周报", "根据要点写一份周报：{{points}}", { language: "zh-hans" });
const ALL = [TRANSLATE, SUMMARISE, FANYI, WEEKLY];
const ids = (options) => ranked(ALL, { now: NOW, ...options }).map(({ id }) => id);

test("words and pairs of Chinese characters are what a text speaks of", () => {
  assert.deepEqual([...terms("Please 翻译一下 PDF a")], ["please", "pdf", "翻译", "译一", "一下"]);
});

test("letters in order find a title, scattered ones not a body", () => {
  assert.deepEqual(ids({ query: "trn" }), [1]);
  assert.deepEqual(ids({ query: "three points" }), [2]);
  assert.deepEqual(ids({ query: "翻英" }), [3]);
  assert.deepEqual(ids({ query: "zzz" }), []);
});

test("a beginning fits better than letters apart", () => {
  assert.ok(fuzzy("sum", "Summarise") > fuzzy("sum", "A surname"));
});

test("a draft brings up what it seems to want", () => {
  assert.equal(ids({ draft: "请帮我把这段话翻译成英文" })[0], 3);
  assert.equal(ids({ draft: "can you translate this letter" })[0], 1);
  assert.equal(ids({ draft: "写一份本周的周报" })[0], 4);
  assert.equal(intent("nothing of the kind", WEEKLY), 0);
});

test("what one uses comes first, what one used long ago does not", () => {
  assert.equal(ids({ history: { 2: [5, NOW - DAY] } })[0], 2);
  assert.equal(ids({ history: { 2: [5, NOW - DAY], 4: [5, NOW - 90 * DAY] } })[0], 2);
  assert.equal(ids({ language: "zh-hans", history: { 4: [1, NOW] } })[0], 4);
});

test("the page's language comes first among equals", () => {
  assert.deepEqual(ids({ language: "zh-hans" }).slice(0, 2).sort(), [3, 4]);
});

test("everybody's of another language are offered only to whoever wants them", () => {
  const shared = [TRANSLATE, FANYI].map((one) => ({ ...one, is_shared: true }));
  const others = [WEEKLY, { ...SUMMARISE, language: "fr", is_shared: true }]; // one's own, and a language the page has not
  const of = (options) => offered([...shared, ...others], { language: "en", languages: ["en", "zh-hans"], ...options }).map(({ id }) => id);
  assert.deepEqual(of({}), [1, 4, 2]);
  assert.deepEqual(of({ query: "翻" }), [1, 3, 4, 2]);
  assert.deepEqual(of({ draft: "请翻译成英文" }), [1, 3, 4, 2]);
  assert.deepEqual(of({ history: { 3: [1, NOW] } }), [1, 3, 4, 2]);
});
