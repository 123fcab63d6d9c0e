// What the Enter key means. An input method confirms its candidates with Enter as well; that is never a command.

// Safari ends the composition before its keydown; 229 marks that key all the same.
const isComposing = (event) => event.isComposing || event.keyCode === 229;

/** True for an Enter that finishes a one-line field. */
export function commitsText(event) {
  return event.key === "Enter" && !isComposing(event);
}

/** True for an Enter that sends a message. On touch screens Enter is a new line, and the button sends. */
export function sendsMessage(event) {
  if (!commitsText(event) || event.shiftKey || event.altKey) return false;
  return event.ctrlKey || event.metaKey || !hasTouchOnly();
}

export const hasTouchOnly = () => matchMedia("(pointer: coarse)").matches && !matchMedia("(any-pointer: fine)").matches;
