// What is on its way, seen by all tabs of a browser and sent by one of them.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Outbox } from "../../static/chat/state/outbox.js";
import { Tabs } from "../../static/chat/state/tabs.js";

class Storage {
  constructor() {
    this.values = new Map();
  }
  get length() {
    return this.values.size;
  }
  key(i) {
    return [...this.values.keys()][i];
  }
  getItem(key) {
    return this.values.get(key) ?? null;
  }
  setItem(key, value) {
    this.values.set(key, value);
  }
  removeItem(key) {
    this.values.delete(key);
  }
}

/** Locks as the browser has them, as far as tabs use them. `free(name)` closes the tab that holds one. */
class Locks {
  constructor() {
    this.held = new Map();
  }
  async request(name, options, act = options) {
    if (options.ifAvailable && this.held.has(name)) return act(null);
    while (this.held.has(name)) {
      await Promise.race([this.held.get(name).gone, new Promise((resolve) => options.signal?.addEventListener("abort", resolve))]);
      options.signal?.throwIfAborted();
    }
    const freed = withResolvers();
    this.held.set(name, { gone: freed.promise, free: freed.resolve });
    const done = Promise.resolve(act({ name }));
    await Promise.race([done, freed.promise]);
    this.held.delete(name);
    freed.resolve();
    return done;
  }
  free(name) {
    this.held.get(name).free();
  }
}

function withResolvers() {
  let resolve;
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}

const entry = (n, conversation = null) => ({ client_message_id: `00000000-0000-4000-8000-00000000000${n}`, conversation, parent: null, text: `text ${n}`, at: n });
globalThis.addEventListener = () => {};

async function twoTabs() {
  const [storage, locks] = [new Storage(), new Locks()];
  const tabs = [0, 1].map(() => new Tabs({ locks, session: new Storage(), grace: 1 }));
  await Promise.all(tabs.map((tab) => tab.ready));
  return { storage, locks, tabs, boxes: tabs.map((tab) => new Outbox("ada", tab, storage)) };
}

test("each tab sends what was written in it, and shows what all have on the way", async () => {
  const { boxes: [first, second] } = await twoTabs();
  first.keep(entry(1, "c"));
  second.keep(entry(2, "c"));
  assert.deepEqual(first.own().map(({ text }) => text), ["text 1"]);
  assert.deepEqual(second.of("c").map(({ text }) => text), ["text 1", "text 2"]);
  second.settle(entry(2).client_message_id);
  assert.deepEqual(first.of("c").map(({ text }) => text), ["text 1"]);
});

test("a chat that has not begun is on its way in the tab where it is written only", async () => {
  const { boxes: [first, second] } = await twoTabs();
  first.keep(entry(1));
  assert.equal(first.of(null).length, 1);
  assert.equal(second.of(null).length, 0);
});

test("a closed tab's messages are taken over once, by one of the others", async () => {
  const { storage, locks, tabs, boxes: [first, second] } = await twoTabs();
  const third = new Outbox("ada", new Tabs({ locks, session: new Storage(), grace: 1 }), storage);
  await third.tabs.ready;
  first.keep(entry(1));
  const adopted = [];
  for (const box of [second, third]) box.listen({ changed() {}, adopted: ({ text }) => adopted.push(text) });
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(adopted, []);
  locks.free(`rill.tab.${tabs[0].name}`);
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual(adopted, ["text 1"]);
  assert.equal(second.own().length + third.own().length, 1);
});

test("a copied tab takes a name of its own, a tab that is loaded again keeps its name", async () => {
  const [locks, session, awake] = [new Locks(), new Storage(), setInterval(() => {}, 100)]; // a time-out keeps no process
  const original = new Tabs({ locks, session, grace: 1 });
  await original.ready;
  const copied = new Storage();
  copied.setItem("rill.tab", original.name);
  const copy = new Tabs({ locks, session: copied, grace: 1 });
  await copy.ready;
  assert.notEqual(copy.name, original.name);
  locks.free(`rill.tab.${original.name}`);
  const again = new Tabs({ locks, session, grace: 1 });
  await again.ready;
  assert.equal(again.name, original.name);
  clearInterval(awake);
});

test("without locks everything is sent by whoever sees it", () => {
  const storage = new Storage();
  const boxes = [1, 2].map(() => new Outbox("ada", new Tabs({ locks: null, session: new Storage(), grace: 1 }), storage));
  boxes[0].keep(entry(1, "c"));
  assert.deepEqual(boxes[1].own().map(({ text }) => text), ["text 1"]);
});

test("people whose names begin alike do not see each other's messages", async () => {
  const { storage, tabs: [tab] } = await twoTabs();
  new Outbox("ada.b", tab, storage).keep(entry(1, "c"));
  assert.deepEqual(new Outbox("ada", tab, storage).all(), []);
});
