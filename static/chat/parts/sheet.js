// The sheet at the right: one at a time, beside the text on wide screens and over it on phones.

import { byId } from "./dom.js";
import { cancels } from "./keys.js";

const isNarrow = () => matchMedia("(max-width: 760px)").matches;

let shown = null; // { closed, opener } of what the sheet shows

/**
 * Opens the sheet with `title` and the nodes `content`; what it showed before makes way. `closed` runs when it closes,
 * however that comes about; the focus then goes back to where it was.
 */
export function openSheet(title, content, closed = null) {
  const sheet = wired();
  const opener = shown?.opener ?? document.activeElement;
  finish();
  shown = { closed, opener };
  byId("sheet-title").textContent = title;
  byId("sheet-body").replaceChildren(...content);
  byId("sheet-body").scrollTop = 0;
  if (sheet.open) return;
  if (isNarrow()) sheet.showModal();
  else sheet.show();
}

export function closeSheet() {
  if (!byId("sheet").open) return;
  const { opener } = shown;
  finish(); // first: a field that has the focus back while the content goes would take no more keys
  byId("sheet").close();
  if (opener?.isConnected) opener.focus();
}

function wired() {
  const sheet = byId("sheet");
  if (sheet.dataset.wired) return sheet;
  sheet.dataset.wired = "yes";
  byId("sheet-close").addEventListener("click", closeSheet);
  // A sheet beside the text is no modal dialog: the browser leaves its Escape to the page.
  sheet.addEventListener("keydown", (event) => {
    if (!cancels(event)) return;
    event.preventDefault();
    closeSheet();
  });
  document.addEventListener("keydown", (event) => event.key === "Escape" && document.activeElement === document.body && closeSheet());
  // Phones close with “back”; where they do not ask, their event comes late, and another sheet may be shown by then.
  sheet.addEventListener("cancel", (event) => {
    event.preventDefault();
    closeSheet();
  });
  sheet.addEventListener("close", () => sheet.open || finish());
  return sheet;
}

function finish() {
  const done = shown?.closed;
  shown = null;
  byId("sheet-body").replaceChildren();
  done?.();
}
