// The frame around the text: the rail's two widths, the drawer on phones, the shortcuts that reach everything.

import { byId } from "../parts/dom.js";
import { cancels } from "../parts/keys.js";

const KEY = "rill.rail";
const root = document.documentElement;
const narrow = matchMedia("(max-width: 760px)");

/** Wires the rail's buttons and the keys: Ctrl+K searches, Ctrl+Shift+O begins a new chat, / goes to the field. */
export function setUpFrame(router) {
  root.dataset.rail = localStorage.getItem(KEY) ?? "open";
  byId("rail-toggle").addEventListener("click", () => toggleRail());
  byId("drawer-open").addEventListener("click", () => setDrawer(true));
  byId("shade").addEventListener("click", () => setDrawer(false));
  byId("rail").addEventListener("click", (event) => event.target.closest("a[data-conversation]") && setDrawer(false));
  narrow.addEventListener("change", () => setDrawer(false)); // a phone that is turned has the rail beside the text
  document.addEventListener("keydown", (event) => shortcut(event, router));
}

function toggleRail() {
  if (narrow.matches) {
    setDrawer(false);
    return;
  }
  root.dataset.rail = root.dataset.rail === "open" ? "closed" : "open";
  localStorage.setItem(KEY, root.dataset.rail);
}

function setDrawer(isOpen) {
  if (isOpen === root.hasAttribute("data-drawer") || (isOpen && !narrow.matches)) return;
  root.toggleAttribute("data-drawer", isOpen);
  byId("main").inert = isOpen;
  if (isOpen) byId("rail-toggle").focus();
  else if (narrow.matches) byId("drawer-open").focus();
}

function shortcut(event, router) {
  const isTyping = event.target.closest?.("input, textarea");
  if (cancels(event)) setDrawer(false);
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
  if (narrow.matches) setDrawer(true);
  else root.dataset.rail = "open";
  byId("search").focus();
}
