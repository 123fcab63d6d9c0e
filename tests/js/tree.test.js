// Which branch is shown, and which messages stand beside each other.

import assert from "node:assert/strict";
import { test } from "node:test";

import { addMessage, pathTo, topOf } from "../../static/chat/state/tree.js";

const tree = (...rows) => new Map(rows.map(([id, parent, variants]) => [id, { id, parent, variants }]));
const ids = (path) => path.map(({ id }) => id);

test("a path goes from the first loaded message to the leaf", () => {
  const messages = tree(["q1", null, ["q1"]], ["a1", "q1", ["a1", "a2"]], ["a2", "q1", ["a1", "a2"]], ["q2", "a1", ["q2"]], ["a3", "q2", ["a3"]]);
  assert.deepEqual(ids(pathTo(messages, "a3")), ["q1", "a1", "q2", "a3"]);
  assert.deepEqual(ids(pathTo(messages, "a2")), ["q1", "a2"]);
  assert.deepEqual(pathTo(messages, null), []);
});

test("a branch that is loaded in part says where it goes on", () => {
  const messages = tree(["q7", "a6", ["q7"]], ["a7", "q7", ["a7"]]);
  assert.equal(topOf(messages, "a7"), "q7");
  assert.equal(topOf(tree(["q1", null, ["q1"]]), "q1"), null);
  assert.equal(topOf(new Map(), null), null);
});

test("a new message stands behind those beside it, also behind those that are not loaded", () => {
  const messages = tree(["a2", "q1", ["a1", "a2"]], ["q9", "a2", ["q9"]]);
  addMessage(messages, { id: "a3", parent: "q1" });
  assert.deepEqual(messages.get("a3").variants, ["a1", "a2", "a3"]);
  assert.deepEqual(messages.get("a2").variants, ["a1", "a2", "a3"]);
  assert.deepEqual(messages.get("q9").variants, ["q9"]);
});

test("a message that is there already stays as it is", () => {
  const messages = tree(["a1", "q1", ["a1"]]);
  addMessage(messages, { id: "a1", parent: "q1", text: "new" });
  assert.equal(messages.get("a1").text, undefined);
});
