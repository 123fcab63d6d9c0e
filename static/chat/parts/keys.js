// What the Enter key means. An input method confirms its candidates with Enter as well; that is never a command.

import { preferences } from "../state/preferences.js";

// Safari ends the composition before its keydown; 229 marks that key all the same.
export const isComposing = (event) => event.isComposing || event.keyCode === 229;

/** True for an Enter that finishes a one-line field. */
export function commitsText(event) {
  return event.key === "Enter" && !isComposing(event);
}

/** True for an Escape that means the page: an input method gives up its candidates with Escape as well. */
export function cancels(event) {
  return event.key === "Escape" && !isComposing(event);
}

/** True for an Enter that sends a message, as the person chose. On touch screens Enter is a new line, the button sends. */
export function sendsMessage(event) {
  if (!commitsText(event) || event.shiftKey || event.altKey) return false;
  return event.ctrlKey || event.metaKey || sendsWith().length === 1;
}

/** The keys that send: Enter alone, or with Ctrl. */
export const sendsWith = () => (hasTouchOnly() || preferences().sendKey === "ctrl-enter" ? ["Ctrl", "Enter"] : ["Enter"]);

export const hasTouchOnly = () => matchMedia("(pointer: coarse)").matches && !matchMedia("(any-pointer: fine)").matches;
