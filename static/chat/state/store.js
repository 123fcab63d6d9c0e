// The one state of the page. Parts are replaced or changed by the module that owns them, then announced by name.

export class Store {
  constructor(boot) {
    this.boot = boot;
    this.connection = "connecting"; // connecting, open, lost, offline, signed-out
    this.line = "socket"; // socket, events, polling
    this.list = { items: [], next: null, query: "", tag: "", isArchived: false, numFound: null, isMore: false, state: "loading" };
    this.conversation = emptyConversation();
    this.listeners = new Map();
  }

  /** Calls `listener` after each change of `part`: connection, list, conversation, thread, answer, rated, setup, and
   * background: an answer { conversation, state } of a chat that is not shown. */
  on(part, listener) {
    if (!this.listeners.has(part)) this.listeners.set(part, []);
    this.listeners.get(part).push(listener);
  }

  announce(part, detail) {
    for (const listener of this.listeners.get(part) ?? []) listener(detail);
  }
}

/**
 * A conversation that has no message yet; it gets its id with the first accepted one. `numChanges` counts this page's.
 * `model` is empty until one is chosen or known.
 */
export function emptyConversation() {
  return { id: null, title: "", messages: new Map(), leaf: null, pending: [], numChanges: 0, state: "ready", system_prompt: "", parameters: {}, model: "", is_temporary: false };
}
