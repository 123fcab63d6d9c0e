// What the person of this browser prefers on this page. Knows storage only; colours, language and text size are
// cookies, because the server's first byte needs them.

const KEY = "rill.preferences";
const DEFAULTS = { sendKey: "enter", warmsTyping: false, model: "" }; // sendKey: enter, ctrl-enter

export const preferences = () => ({ ...DEFAULTS, ...JSON.parse(localStorage.getItem(KEY) ?? "{}") });

/** Keeps `changes` { sendKey, warmsTyping, model }. */
export function prefer(changes) {
  localStorage.setItem(KEY, JSON.stringify({ ...preferences(), ...changes }));
}
