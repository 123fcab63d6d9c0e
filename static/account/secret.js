// A new key with its secret, which is shown this once.

import { copy } from "../chat/parts/copy.js";
import { el, icon } from "../chat/parts/dom.js";
import { t } from "../chat/parts/i18n.js";
import { say } from "../chat/parts/say.js";

/** `made` is { name, key }; `close()` takes it away. */
export function shownOnce({ name, key }, close) {
  const field = el("input", { type: "text", readOnly: true, value: key, spellcheck: false, "aria-label": t("keys.secret"), "aria-describedby": "secret-hint" });
  field.addEventListener("focus", () => field.select());
  const copied = async (event) => {
    await copy(key, event.currentTarget);
    say(t("keys.copied"));
  };
  const button = el("button", { type: "button", className: "primary", onclick: copied }, icon("copy"), t("keys.copy"));
  return el(
    "section",
    { className: "secret", "aria-label": t("keys.secret") },
    el("p", { id: "secret-hint" }, t("keys.once", { name })),
    el("div", { className: "secret-line" }, field, button),
    el("button", { type: "button", onclick: close }, t("keys.done")),
  );
}
