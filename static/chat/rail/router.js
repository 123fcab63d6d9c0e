// The address bar and the shown conversation: / is a new one, /c/<id> a stored one.

export class Router {
  /** `onOpen(id)` is called when the person goes to another conversation; null is a new one. */
  constructor(onOpen) {
    this.onOpen = onOpen;
    window.addEventListener("popstate", () => onOpen(idOf(location.pathname)));
    document.addEventListener("click", (event) => this.follow(event));
  }

  /** Links within the page open without a load; with a modifier key the browser does what it always does. */
  follow(event) {
    const anchor = event.target.closest("a[data-conversation]");
    if (!anchor || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    this.go(anchor.dataset.conversation || null);
  }

  go(id) {
    history.pushState(null, "", pathOf(id));
    this.onOpen(id);
  }

  /** The shown conversation got its address; nothing is opened. */
  show(id) {
    if (location.pathname !== pathOf(id)) history.replaceState(null, "", pathOf(id));
  }
}

export const pathOf = (id) => (id ? `/c/${id}` : "/");
const idOf = (path) => /^\/c\/([0-9a-f-]{36})$/.exec(path)?.[1] ?? null;
