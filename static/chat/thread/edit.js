// The words of a question as a field in their place. Knows neither network nor tree: `send(text)` asks, `keep(text)`
// keeps the answer that is there, `close()` ends.

import { el } from "../parts/dom.js";
import { t } from "../parts/i18n.js";
import { sendsMessage } from "../parts/keys.js";

export function editForm(text, maxLength, { send, keep, close }) {
  const field = el("textarea", { value: text, rows: 1, maxLength, "aria-label": t("edit.field") });
  const button = el("button", { className: "primary" }, t("send"));
  const only = el("button", { type: "button", title: t("edit.only.why"), onclick: () => keep(field.value) }, t("edit.only"));
  const submit = () => field.value.trim() && send(field.value);
  const fit = () => {
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight}px`;
    button.disabled = !field.value.trim();
    only.disabled = button.disabled || field.value === text;
  };
  const form = el(
    "form",
    { className: "edit" },
    field,
    el("p", { className: "edit-hint" }, t("edit.hint")),
    el("button", { type: "button", onclick: close }, t("edit.cancel")),
    only,
    button,
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  field.addEventListener("input", fit);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.isComposing) close();
    if (!sendsMessage(event)) return;
    event.preventDefault();
    submit();
  });
  return { form, open: () => (fit(), field.focus(), field.setSelectionRange(text.length, text.length)) };
}
