// The tree of messages: which branch is shown, which answers stand beside each other. Pure; knows no page.

/** The messages from the first to `leaf`. */
export function pathTo(messages, leaf) {
  const path = [];
  for (let message = messages.get(leaf); message; message = messages.get(message.parent)) path.unshift(message);
  return path;
}

/** The messages with the same parent and role as `message`, in the order they were made. */
export function variantsOf(messages, message) {
  return [...messages.values()]
    .filter((other) => other.parent === message.parent && other.role === message.role)
    .sort((a, b) => a.created_at.localeCompare(b.created_at));
}

/** The newest leaf below `id`. */
export function leafBelow(messages, id) {
  const children = [...messages.values()].filter((message) => message.parent === id);
  if (children.length === 0) return id;
  const newest = children.reduce((a, b) => (b.created_at.localeCompare(a.created_at) >= 0 ? b : a));
  return leafBelow(messages, newest.id);
}

export const LIVE_STATES = new Set(["queued", "running"]);

export function isLive(message) {
  return message.role === "assistant" && LIVE_STATES.has(message.state);
}
