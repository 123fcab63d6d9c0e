// The model of a chat is its own, of a new one the last that was chosen, and of none the first.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { chosenFor, modelOf } from "../../static/chat/state/models.js";
import { prefer } from "../../static/chat/state/preferences.js";

const [RIVER, STONE] = [{ name: "river" }, { name: "stone" }];
const store = (conversation, models = [RIVER, STONE]) => ({ boot: { models }, conversation: { id: null, model: "", ...conversation } });

beforeEach(() => {
  const kept = new Map();
  globalThis.localStorage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value) };
});

test("without a choice the first one answers, and a new chat need not say so", () => {
  assert.equal(modelOf(store({})), RIVER);
  assert.equal(chosenFor(store({})), "");
  assert.equal(modelOf(store({}, [])), null);
  assert.equal(chosenFor(store({}, [])), "");
});

test("a new chat takes the one that was chosen last, a stored one its own", () => {
  prefer({ model: "stone" });
  assert.equal(modelOf(store({})), STONE);
  assert.equal(chosenFor(store({})), "stone");
  assert.equal(modelOf(store({ id: "c" })), RIVER);
  assert.equal(modelOf(store({ id: "c", model: "stone" })), STONE);
  assert.equal(modelOf(store({ model: "river" })), RIVER);
});

test("a model that is gone gives way to the first", () => {
  prefer({ model: "sand" });
  assert.equal(modelOf(store({})), RIVER);
  assert.equal(modelOf(store({ id: "c", model: "sand" })), RIVER);
});
