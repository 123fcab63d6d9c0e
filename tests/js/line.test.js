// The line without a WebSocket: what a failure tells, and how events come out of pieces.

import assert from "node:assert/strict";
import { test } from "node:test";

import { framesOf } from "../../static/chat/line/events.js";
import { errorOf } from "../../static/chat/line/request.js";

const response = (status, body, headers = {}) => new Response(body, { status, headers });
const told = (code) => JSON.stringify({ error: { message: "No.", type: "x", param: null, code } });

test("a refusal carries the server's code, its words and when it may go better", async () => {
  const error = await errorOf(response(503, told("queue_full"), { "Retry-After": "7" }));
  assert.deepEqual([error.status, error.code, error.message, error.retry_after_s, error.resets_at], [503, "queue_full", "No.", 7, null]);
});

test("a used-up quota says when there is room again", async () => {
  const error = await errorOf(response(429, told("quota_exceeded"), { "Retry-After": "60" }));
  const inSeconds = (Date.parse(error.resets_at) - Date.now()) / 1000;
  assert.ok(inSeconds > 58 && inSeconds <= 60);
});

test("the framework's own form and a page of a proxy are errors as well", async () => {
  const framework = await errorOf(response(400, JSON.stringify({ detail: "Cannot parse." })));
  assert.deepEqual([framework.code, framework.message], ["request_failed", "Cannot parse."]);
  const page = await errorOf(response(502, "<html>Bad gateway</html>"));
  assert.deepEqual([page.status, page.code], [502, "request_failed"]);
});

test("whoever is signed out hears that, whatever the server calls it", async () => {
  assert.equal((await errorOf(response(401, told("access_ended")))).code, "signed_out");
});

test("events come out whole, however the pieces are cut; comments are silence", async () => {
  const stream = ': open\n\nid: 3\ndata: {"type":"delta","seq":3,"text":"ä\\n"}\n\n: keep-alive\n\ndata: {"type":"done"}\n\n';
  for (const size of [1, 2, 7, stream.length]) {
    const pieces = stream.match(new RegExp(`[^]{1,${size}}`, "g"));
    const found = [];
    for await (const frame of framesOf(async () => ({ done: pieces.length === 0, value: pieces.shift() }))) found.push(frame);
    assert.deepEqual(found, [{ type: "delta", seq: 3, text: "ä\n" }, { type: "done" }]);
  }
});
