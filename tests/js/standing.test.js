// Which quota is worth a word, and how full the model's window is.

import assert from "node:assert/strict";
import { test } from "node:test";

import { tightest } from "../../static/chat/composer/standing.js";

const quota = (is_warning, requests, tokens, resets_at = "2026-01-02T00:00:00Z") => ({ is_warning, requests, tokens, resets_at });
const of = (limit, left) => ({ limit, left, used: limit - left });

test("nothing is said while no quota warns", () => {
  assert.equal(tightest([]), null);
  assert.equal(tightest([quota(false, of(10, 1), null)]), null);
});

test("the kind of which the smallest part is left is told", () => {
  assert.deepEqual(tightest([quota(true, of(10, 5), of(1000, 100)), quota(true, of(100, 20), null)]), {
    kind: "tokens",
    left: 100,
    limit: 1000,
    resets_at: "2026-01-02T00:00:00Z",
  });
});

test("of two that are used up the one counts that is closed longer", () => {
  const [hour, day] = ["2026-01-01T10:00:00Z", "2026-01-02T00:00:00Z"];
  assert.equal(tightest([quota(true, of(5, 0), null, hour), quota(true, of(50, 0), null, day)]).resets_at, day);
  assert.equal(tightest([quota(true, of(0, 0), null, hour)]).left, 0);
});
