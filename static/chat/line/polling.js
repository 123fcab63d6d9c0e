// An answer by asking for it again and again: what works where nothing that flows comes through.

import { request } from "./request.js";
import { sleep } from "./time.js";
import { LIVE_STATES } from "../state/tree.js";

const EVERY_MS = 1_000;
const HIDDEN_EVERY_MS = 5_000;

/** A snapshot whenever there is more, and `done` with the figures. Raises ApiError. */
export async function* polled(generation, answer, signal) {
  for (let seq = 0; !signal.aborted; ) {
    const now = await request("GET", `/api/messages/${answer}?after=${seq}`);
    if (now.text !== null) yield { type: "snapshot", generation, answer, seq: now.seq, text: now.text, state: now.state };
    seq = now.seq;
    if (!LIVE_STATES.has(now.state)) {
      const row = await request("GET", `/api/generations/${generation}`);
      yield { ...row, type: "done", generation, length: now.text.length };
      return;
    }
    await sleep(document.hidden ? HIDDEN_EVERY_MS : EVERY_MS, signal);
  }
}
