// The small form for the variables of a template; what it gives goes into the field.

import { closeSheet, openSheet } from "../parts/sheet.js";
import { el } from "../parts/dom.js";
import { t } from "../parts/i18n.js";
import { sendsMessage } from "../parts/keys.js";
import { filled, placeOfDraft, variablesOf } from "../composer/variables.js";
import { Row } from "./form.js";

/** Asks for the variables of `template`; `done(text)` gets the text. `draft` is filled in where the text belongs. */
export function askVariables(template, draft, done) {
  const names = variablesOf(template.body);
  const place = placeOfDraft(names);
  const rows = names.map((name) => new Row(name, "", el("textarea", { rows: name === place ? 5 : 1, value: name === place ? draft : "" })));
  const preview = el("p", { className: "preview" });
  const values = () => Object.fromEntries(names.map((name, i) => [name, rows[i].control.value]).filter(([, value]) => value));
  const show = () => (preview.textContent = filled(template.body, values()));
  const insert = (event) => {
    event.preventDefault();
    closeSheet();
    done(filled(template.body, values()));
  };
  const form = el(
    "form",
    { className: "sheet-form", onsubmit: insert, oninput: show, onkeydown: (event) => sendsMessage(event) && (event.ctrlKey || event.metaKey) && insert(event) },
    ...rows.map((row) => row.node),
    el("div", { className: "sheet-end" }, el("button", { className: "primary" }, t("templates.insert"))),
    el("section", { className: "sheet-section" }, el("h3", {}, t("templates.preview")), preview),
  );
  show();
  openSheet(template.title, [form]);
  rows.find((row) => !row.control.value)?.control.focus();
}
