// An answer as server-sent events, read by fetch: unlike EventSource it tells why it ends, and how long it is silent.

import { answered, ApiError } from "./request.js";

// The server says a word at once and another one every ten seconds: longer silence is somebody collecting on the way.
const FIRST_WORD_MS = 5_000;
const SILENCE_MS = 15_000;

/** The stream does not flow. */
export class Stalled extends Error {}

/** Frames after event `after` as they come; ends when the server ends the stream. Raises Stalled and ApiError. */
export async function* eventsOf(generation, after, signal) {
  const headers = { Accept: "text/event-stream", ...(after && { "Last-Event-ID": String(after) }) };
  const patience = { left: FIRST_WORD_MS };
  const controller = new AbortController();
  signal.addEventListener("abort", () => controller.abort(), { once: true });
  try {
    const opening = answered(`/api/generations/${generation}/events`, { headers, cache: "no-store", signal: controller.signal });
    const response = await inTime(opening, patience);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    yield* framesOf(() => inTime(reader.read(), patience));
  } finally {
    controller.abort();
  }
}

/** The frames in what `read()` gives, piece by piece. Pure but for what `read` does. */
export async function* framesOf(read) {
  let rest = "";
  for (;;) {
    const { done, value } = await read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.split("\n").find((line) => line.startsWith("data: "));
      if (data) yield JSON.parse(data.slice(6));
    }
  }
}

/** What `work` gives, unless it takes longer than the patience that is left; any word renews that. */
async function inTime(work, patience) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Stalled("the stream is silent")), patience.left);
  });
  try {
    const found = await Promise.race([work, late]);
    if (!(found instanceof Response)) patience.left = SILENCE_MS;
    return found;
  } catch (error) {
    if (error instanceof TypeError) throw new ApiError(0, "offline"); // the connection broke off
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
