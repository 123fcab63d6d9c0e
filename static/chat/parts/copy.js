// Copying: the button that was pressed shows for a moment that it is done.

import { el, icon } from "./dom.js";

const SHOWN_MS = 1200;

/** Puts `text` on the clipboard. */
export async function copy(text, button) {
  await write(text);
  const before = [...button.childNodes];
  button.replaceChildren(icon("check"));
  setTimeout(() => button.replaceChildren(...before), SHOWN_MS);
}

async function write(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  // Without TLS browsers have no clipboard object, only the old command.
  const field = el("textarea", { className: "unseen", value: text });
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

/** Copies the code whose copy button was clicked; other clicks are nobody's here. */
export function copyCode(event) {
  const button = event.target.closest("[data-copy-code]");
  if (button) copy(button.closest(".code").querySelector("code").textContent, button);
}
