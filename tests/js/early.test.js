// What of a draft is told early, and what takes it back.

import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.document ??= { documentElement: { dataset: {} }, cookie: "" };
globalThis.localStorage ??= { getItem: () => JSON.stringify({ warmsTyping: true }), setItem: () => {} };
const { EarlyReader } = await import("../../static/chat/composer/early.js");

function reader(pending = []) {
  const said = [];
  const store = { conversation: { id: "c1", is_temporary: false, pending } };
  return { early: new EarlyReader(store, (frame) => said.push(frame)), said, store };
}

test("a draft that is cleared gives way to the history, once", () => {
  const { early, said } = reader();
  early.tell("How long does the journey from the spring to the sea take for a drop of water in the river?");
  early.draft("");
  early.draft("");
  assert.deepEqual(said.map(({ draft }) => Boolean(draft)), [true, false]);
});

test("a draft that is sent takes nothing back: the question does", () => {
  const { early, said, store } = reader();
  early.tell("How long does the journey from the spring to the sea take for a drop of water in the river?");
  store.conversation.pending.push({ client_message_id: "m1" });
  early.draft("");
  assert.equal(said.length, 1);
});

test("a temporary chat and one without an address tell nothing", () => {
  const { early, said, store } = reader();
  Object.assign(store.conversation, { is_temporary: true });
  early.tell("How long does the journey from the spring to the sea take for a drop of water?");
  Object.assign(store.conversation, { is_temporary: false, id: null });
  early.tell("How long does the journey from the spring to the sea take for a drop of water?");
  assert.deepEqual(said, []);
});
