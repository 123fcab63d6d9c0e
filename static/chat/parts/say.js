// The one line that screen readers hear at once: what happened that the eye sees elsewhere.

import { byId } from "./dom.js";

export function say(words) {
  byId("status").textContent = words;
}
