// What arrival times say about proxies.

import assert from "node:assert/strict";
import { test } from "node:test";

import { eventsVerdict, socketVerdict, worded } from "../../static/selftest/verdict.js";

const steady = Array.from({ length: 20 }, (_, i) => 30 + 100 * i);

test("events that come one by one flow, also where the network shifts some", () => {
  assert.equal(eventsVerdict(steady, 20, 100).text, "events.flows");
  const shifted = steady.map((time, i) => (i % 4 === 1 ? steady[i + 1] - 5 : time));
  assert.equal(eventsVerdict(shifted, 20, 100).text, "events.flows");
});

test("events in one block, or in a few, were collected on the way", () => {
  const { text, figures } = eventsVerdict(Array(20).fill(1950), 20, 100);
  assert.equal(text, "events.buffered");
  assert.deepEqual(figures, { num: 20, of: 20, first: 1950, spread: 0, expected: 1900 });
  const blocks = steady.map((_, i) => 500 * (1 + Math.floor(i / 5)));
  assert.equal(eventsVerdict(blocks, 20, 100).text, "events.buffered");
});

test("a stream that breaks off, or never begins, is blocked", () => {
  assert.equal(eventsVerdict(steady.slice(0, 7), 20, 100).text, "events.blocked");
  assert.equal(eventsVerdict([], 20, 100).text, "events.blocked");
});

test("a socket flows, is slow, or does not come through", () => {
  assert.equal(socketVerdict(40, Array(20).fill(12), 20).text, "socket.flows");
  assert.equal(socketVerdict(40, [...Array(19).fill(12), 4000], 20).text, "socket.slow");
  assert.equal(socketVerdict(40, Array(5).fill(12), 20).text, "socket.slow");
  assert.equal(socketVerdict(null, [], 20).text, "socket.blocked");
});

test("figures are whole numbers in the words", () => {
  assert.equal(worded("after {first} ms, {num}", { first: 12.4, num: 20 }), "after 12 ms, 20");
});
