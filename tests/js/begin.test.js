// What a new chat is set up with goes to the server once, before its first message, and waits for the line.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Beginner, beginningOf } from "../../static/chat/composer/begin.js";

const NEW = { id: null, is_temporary: false, system_prompt: "", parameters: {} };
const ENTRY = { client_message_id: "m", setup: { system_prompt: "Be brief.", parameters: {} } };

function world(answer) {
  const bodies = [];
  const listeners = [];
  const store = { connection: "open", on: (_, listener) => listeners.push(listener) };
  const again = [];
  globalThis.document = { querySelector: () => ({ content: "token" }) };
  globalThis.fetch = async (_, { body }) => {
    bodies.push(JSON.parse(body));
    return answer();
  };
  const beginner = new Beginner(store, (entry) => again.push(entry));
  const connect = (connection) => {
    store.connection = connection;
    for (const listener of listeners) listener();
  };
  return { beginner, bodies, again, connect };
}

const made = () => new Response(JSON.stringify({ id: "c" }), { status: 201 });

test("only a new chat carries what it begins with", () => {
  assert.deepEqual(beginningOf(NEW), {});
  assert.deepEqual(beginningOf({ ...NEW, is_temporary: true }), { temporary: true });
  assert.deepEqual(beginningOf({ ...NEW, parameters: { top_k: 1 } }), { setup: { system_prompt: "", parameters: { top_k: 1 } } });
  assert.deepEqual(beginningOf({ ...NEW, id: "c", system_prompt: "x" }), {});
  assert.deepEqual(beginningOf(NEW, "stone"), { setup: { system_prompt: "", parameters: {}, model: "stone" } });
  assert.deepEqual(beginningOf({ ...NEW, id: "c" }, "stone"), {});
});

test("a chat is made once, however often its message goes out", async () => {
  const { beginner, bodies } = world(made);
  const both = await Promise.all([beginner.hasBegun(ENTRY), beginner.hasBegun(ENTRY)]);
  assert.deepEqual(both, [true, false]);
  assert.deepEqual(bodies, [{ client_message_id: "m", is_temporary: false, system_prompt: "Be brief.", parameters: {} }]);
});

test("without a line it waits, and goes out when that is back", async () => {
  const { beginner, bodies, again, connect } = world(made);
  connect("offline");
  assert.equal(await beginner.hasBegun(ENTRY), false);
  assert.deepEqual([bodies, again], [[], []]);
  connect("open");
  assert.deepEqual(again, [ENTRY]);
  connect("open");
  assert.equal(again.length, 1);
});

test("a line that breaks in between makes it wait; one that should be there is a failure", async () => {
  const { beginner, again, connect } = world(() => {
    connect("lost");
    throw new TypeError("network");
  });
  assert.equal(await beginner.hasBegun(ENTRY), false);
  connect("open");
  assert.deepEqual(again, [ENTRY]);
  const broken = world(() => {
    throw new TypeError("network");
  });
  await assert.rejects(broken.beginner.hasBegun(ENTRY), { status: 0 });
});
