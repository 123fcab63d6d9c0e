// The list of chats as data: order, days, what belongs to which list, picking, and marks of new answers.

import assert from "node:assert/strict";
import { test } from "node:test";

import { fits, groupsOf, inOrder, merged } from "../../static/chat/rail/order.js";
import { Selection } from "../../static/chat/rail/selection.js";
import { Marks } from "../../static/chat/state/marks.js";

const NOW = new Date(2026, 3, 15, 12);
const at = (daysAgo, hour = 9) => new Date(2026, 3, 15 - daysAgo, hour).toISOString();
const chat = (id, updated_at, more = {}) => ({ id, updated_at, tags: [], is_pinned: false, is_archived: false, ...more });
const ids = (items) => items.map((item) => item.id);

test("pinned ones stand first, then the latest", () => {
  assert.deepEqual(ids(inOrder([chat("a", at(3)), chat("b", at(1)), chat("c", at(9), { is_pinned: true })])), ["c", "b", "a"]);
});

test("days are those of the reader's calendar", () => {
  const items = [chat("p", at(40), { is_pinned: true }), chat("a", at(0, 0)), chat("b", at(1, 23)), chat("c", at(6)), chat("d", at(7)), chat("e", at(40))];
  assert.deepEqual(groupsOf(items, NOW).map(({ key, items: group }) => [key, ...ids(group)]), [
    ["pinned", "p"], ["today", "a"], ["yesterday", "b"], ["this_week", "c"], ["2026-04", "d"], ["2026-03", "e"],
  ]);
});

test("a list holds what it asks for; only the server knows what a search finds", () => {
  const all = { query: "", tag: "", isArchived: false };
  assert.ok(fits(chat("a", at(0)), all, false));
  assert.ok(!fits(chat("a", at(0), { is_archived: true }), all, true));
  assert.ok(!fits(chat("a", at(0)), { ...all, tag: "work" }, true));
  assert.ok(fits(chat("a", at(0), { tags: ["work"] }), { ...all, tag: "work" }, false));
  assert.ok(!fits(chat("a", at(0)), { ...all, query: "x" }, false));
  assert.ok(fits(chat("a", at(0)), { ...all, query: "x" }, true));
});

test("a beginning that is fetched anew keeps what was loaded behind it, and drops what is gone", () => {
  const before = [chat("a", at(1)), chat("gone", at(2)), chat("b", at(3)), chat("c", at(4)), chat("d", at(5))];
  const page = { items: [chat("new", at(0)), chat("a", at(1)), chat("b", at(3))], next: "cursor" };
  assert.deepEqual(ids(merged(before, page)), ["new", "a", "b", "c", "d"]);
  assert.deepEqual(ids(merged(before, { ...page, next: null })), ["new", "a", "b"]);
});

test("several are picked one by one, as a row, or all; what has left the list is picked no longer", () => {
  let told = 0;
  const selection = new Selection(() => (told += 1));
  selection.begin("b");
  selection.extend("d", ["a", "b", "c", "d"]);
  selection.toggle("c");
  assert.deepEqual([...selection.ids].sort(), ["b", "d"]);
  selection.keep(["d"]);
  assert.deepEqual([...selection.ids], ["d"]);
  selection.all(["a", "d"]);
  assert.equal(selection.ids.size, 2);
  selection.end();
  assert.equal(selection.ids.size, 0);
  assert.ok(!selection.isOn && told >= 4);
});

test("a mark of a new answer is told to all tabs and kept until it is looked at", () => {
  const kept = new Map();
  const storage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value), removeItem: (key) => kept.delete(key) };
  const page = new EventTarget();
  const marks = new Marks("ada", storage, page);
  let told = 0;
  marks.on(() => (told += 1));
  marks.add("a");
  marks.add("a");
  assert.deepEqual([...marks.all()], ["a"]);
  page.dispatchEvent(Object.assign(new Event("storage"), { key: "rill.new.ada" }));
  page.dispatchEvent(Object.assign(new Event("storage"), { key: "rill.new.bob" }));
  marks.remove("a");
  assert.deepEqual([told, kept.size], [3, 0]);
});
