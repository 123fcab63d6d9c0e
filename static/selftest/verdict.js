// What arrival times say about the way between server and browser. Pure: times in, the name of a text and its figures out.

// Events that came within so much of each other came together.
const TOGETHER_MS = 20;
// A quiet network shifts events by little; where fewer than half stand alone, somebody collects them.
const LEAST_ALONE = 0.5;
const SLOW_MS = 2000;

/** `times`: when each event came, in ms since it was asked for; `of` were sent, one every `everyMs`. */
export function eventsVerdict(times, of, everyMs) {
  const [first = 0, last = 0] = [times[0], times.at(-1)];
  const figures = { num: times.length, of, first, spread: last - first, expected: (of - 1) * everyMs };
  if (times.length < of) return { text: "events.blocked", figures };
  const numAlone = times.filter((time, i) => i === 0 || time - times[i - 1] > TOGETHER_MS).length;
  return { text: numAlone >= of * LEAST_ALONE ? "events.flows" : "events.buffered", figures };
}

/** `first`: ms until the welcome, null without one; `trips`: ms from each frame to its answer, of `of` that were sent. */
export function socketVerdict(first, trips, of) {
  const figures = { num: trips.length, of, first, slowest: Math.max(0, ...trips) };
  if (first === null || trips.length === 0) return { text: "socket.blocked", figures };
  return { text: figures.slowest > SLOW_MS || trips.length < of ? "socket.slow" : "socket.flows", figures };
}

/** The text with its {figures}, rounded. */
export const worded = (text, figures) => text.replace(/\{(\w+)\}/g, (_, name) => String(Math.round(figures[name] ?? 0)));
