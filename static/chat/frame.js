// The frame around the text: the rail's two widths, the drawer on phones, the shortcuts that reach everything.

import { byId } from "./dom.js";

const KEY = "rill.rail";
const root = document.documentElement;
const isNarrow = () => matchMedia("(max-width: 760px)").matches;

/** Wires the rail's buttons and the keys: Ctrl+K searches, Ctrl+Shift+O begins a new chat, / goes to the field. */
export function setUpFrame(router) {
  root.dataset.rail = localStorage.getItem(KEY) ?? "open";
  byId("rail-toggle").addEventListener("click", () => toggleRail());
  byId("drawer-open").addEventListener("click", () => setDrawer(true));
  byId("shade").addEventListener("click", () => setDrawer(false));
  byId("rail").addEventListener("click", (event) => event.target.closest("a[data-conversation]") && setDrawer(false));
  document.addEventListener("keydown", (event) => shortcut(event, router));
}

function toggleRail() {
  if (isNarrow()) {
    setDrawer(false);
    return;
  }
  root.dataset.rail = root.dataset.rail === "open" ? "closed" : "open";
  localStorage.setItem(KEY, root.dataset.rail);
}

function setDrawer(isOpen) {
  if (!isNarrow() && isOpen) return;
  root.toggleAttribute("data-drawer", isOpen);
  byId("main").inert = isOpen;
  if (isOpen) byId("rail-toggle").focus();
  else if (isNarrow()) byId("drawer-open").focus();
}

function shortcut(event, router) {
  const isTyping = event.target.closest?.("input, textarea");
  if (event.key === "Escape") setDrawer(false);
  else if ((event.ctrlKey || event.metaKey) && event.key === "k") search(event);
  else if ((event.ctrlKey || event.metaKey) && event.shiftKey && event.key.toLowerCase() === "o") {
    event.preventDefault();
    router.go(null);
  } else if (event.key === "/" && !isTyping) {
    event.preventDefault();
    byId("message").focus();
  }
}

function search(event) {
  event.preventDefault();
  if (isNarrow()) setDrawer(true);
  else root.dataset.rail = "open";
  byId("search").focus();
}
