// The two forms of the page of keys: for a new one, and for one that takes another's place. They ask for nothing
// themselves: what was wanted goes to `make`, and `close` ends it.

import { el } from "../chat/parts/dom.js";
import { t } from "../chat/parts/i18n.js";
import { Row } from "../chat/sheets/form.js";
import { scopeWords } from "./keyrow.js";

const MAX_NAME = 100;
const SCOPES = [["chat", true], ["embeddings", true], ["usage", false]]; // with whether they are chosen at first
const DAYS = [30, 90, 365];
const USUAL_DAYS = 90;
const HOUR_S = 3600;
const DAY_S = 86_400;

export function newKeyForm(make, close) {
  const name = new Row(t("keys.name"), t("keys.name.hint"), el("input", { type: "text", maxLength: MAX_NAME, autocomplete: "off" }));
  const boxes = SCOPES.map(([value, checked]) => el("input", { type: "checkbox", value, checked }));
  const scopes = scopeField(boxes);
  const ends = DAYS.map((n) => el("option", { value: n, selected: n === USUAL_DAYS }, t("keys.after_days", { n })));
  const end = new Row(t("keys.ends"), "", el("select", {}, ...ends, el("option", { value: "" }, t("keys.never_ends"))));
  return form([name.node, scopes.node, end.node], close, () => {
    const wanted = { name: name.control.value.trim(), scopes: boxes.filter((box) => box.checked).map((box) => box.value), days: Number(end.control.value) || null };
    name.say(wanted.name ? "" : t("keys.name.needed"));
    scopes.say(wanted.scopes.length ? "" : t("keys.scopes.needed"));
    return wanted.name && wanted.scopes.length ? make(wanted) : null;
  });
}

export function rotationForm(make, close) {
  const graces = [[0, t("keys.grace.none")], [HOUR_S, t("keys.grace.hour")], [DAY_S, t("keys.grace.day")], [7 * DAY_S, t("keys.grace.week")]];
  const options = graces.map(([value, words]) => el("option", { value, selected: value === DAY_S }, words));
  const grace = new Row(t("keys.grace"), t("keys.grace.hint"), el("select", {}, ...options));
  return form([grace.node], close, () => make(Number(grace.control.value)));
}

/** Sent once: the button rests until the answer is there. */
function form(rows, close, send) {
  const button = el("button", { className: "primary" }, t("keys.make"));
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    await send();
    button.disabled = false;
  };
  const end = el("div", { className: "sheet-end" }, button, el("button", { type: "button", onclick: close }, t("keys.cancel")));
  return el("form", { className: "sheet-form", novalidate: true, onsubmit: submit }, ...rows, end);
}

function scopeField(boxes) {
  const problem = el("p", { id: "scopes-problem", className: "problem", role: "alert", hidden: true });
  const labels = boxes.map((box) => el("label", {}, box, el("span", {}, scopeWords(box.value))));
  const node = el("fieldset", { className: "scopes", "aria-describedby": "scopes-problem" }, el("legend", {}, t("keys.scopes")), ...labels, problem);
  const say = (words) => Object.assign(problem, { textContent: words, hidden: !words });
  return { node, say };
}
