// Variables of templates, the length of a message, and what of a draft is read early.

import assert from "node:assert/strict";
import { test } from "node:test";

import { lengthOf, room, settled } from "../../static/chat/composer/count.js";
import { filled, pieces, placeOfDraft, variablesOf } from "../../static/chat/composer/variables.js";

test("variables are named once and in order, in any script", () => {
  assert.deepEqual(variablesOf("Into {{language}}: {{ 文本 }} ({{language}}) {{not this}} {x}"), ["language", "文本"]);
});

test("values are text, and what has none stays", () => {
  assert.equal(filled("{{a}} {{ b }} {{a}}", { a: "$& {{b}}" }), "$& {{b}} {{ b }} $& {{b}}");
  assert.equal(filled("{{constructor}}", {}), "{{constructor}}");
});

test("a text is shown with the names of its variables", () => {
  assert.deepEqual(pieces("{{a}} into {{ b }}."), [["a", true], [" into ", false], ["b", true], [".", false]]);
  assert.deepEqual(pieces("{{not this}}"), [["{{not this}}", false]]);
});

test("a draft goes where the text belongs", () => {
  assert.equal(placeOfDraft(["text", "language"]), "text");
  assert.equal(placeOfDraft(["language", "letter"]), "letter");
  assert.equal(placeOfDraft([]), null);
});

test("a message is as long as the server counts it", () => {
  assert.equal(lengthOf("a😀字"), 3);
  assert.deepEqual(room("x".repeat(79), 100), { isShown: false, left: 21 });
  assert.deepEqual(room("x".repeat(80), 100), { isShown: true, left: 20 });
  assert.deepEqual(room("😀".repeat(101), 100), { isShown: true, left: -1 });
});

test("only what stands firm is read early", () => {
  assert.equal(settled("short"), "");
  assert.equal(settled("one two three four five six seven eight"), "one two three");
  assert.equal(settled(`${"汉".repeat(40)}`), "汉".repeat(16));
});
