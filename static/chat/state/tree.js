// The tree of messages: which branch is shown, which messages stand beside each other. Pure; knows no page.
// Only the shown branch is loaded, and of a long one only its end; of the others, `variants` names the ids.

/** The messages from the first one that is loaded to `leaf`. */
export function pathTo(messages, leaf) {
  const path = [];
  for (let message = messages.get(leaf); message; message = messages.get(message.parent)) path.push(message);
  return path.reverse();
}

/** The id of the first loaded message above `leaf` when there are others above it, else null. */
export function topOf(messages, leaf) {
  const [top] = pathTo(messages, leaf);
  return top && top.parent !== null ? top.id : null;
}

/** Adds `message` behind those under the same parent. One that is there already stays as it is. */
export function addMessage(messages, message) {
  if (messages.has(message.id)) return;
  const beside = [...messages.values()].filter((other) => other.parent === message.parent);
  const variants = [...new Set([...beside.flatMap((other) => other.variants), message.id])];
  for (const one of [...beside, message]) one.variants = variants;
  messages.set(message.id, message);
}

export const LIVE_STATES = new Set(["queued", "running"]);

export function isLive(message) {
  return message.role === "assistant" && LIVE_STATES.has(message.state);
}
