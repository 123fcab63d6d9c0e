// What is kept about the person: how much was used, everything as a file, everything erased.

import { el } from "../parts/dom.js";
import { t } from "../parts/i18n.js";
import { confirmed } from "../parts/dialogs.js";
import { commitsText } from "../parts/keys.js";
import { request } from "../line/request.js";
import { Row, section } from "./form.js";

const OURS = "rill.";

/** `user` is { name, is_guest, has_password }. */
export function myDataSection(user) {
  const link = (href, words) => el("a", { className: "button", href }, words);
  const state = el("p", { className: "saved", role: "status" });
  const exported = el("button", { type: "button", onclick: () => exportAll(state) }, t("mine.export"));
  return section(
    t("mine.title"),
    el("p", { className: "row-hint" }, t("mine.what")),
    el("div", { className: "button-line" }, link("/usage", t("mine.usage")), link("/keys", t("mine.keys")), exported),
    state,
    eraser(user),
  );
}

/** The link works once and in this session; the browser saves what it gives. */
async function exportAll(state) {
  state.textContent = t("mine.export.begun");
  try {
    const { url } = await request("POST", "/api/me/export");
    location.assign(url);
  } catch {
    state.textContent = t("error.general");
  }
}

function eraser(user) {
  const control = user.has_password
    ? el("input", { type: "password", autocomplete: "current-password" })
    : el("input", { type: "text", autocomplete: "off", autocapitalize: "none", spellcheck: false });
  const row = new Row(t(user.has_password ? "mine.password" : "mine.name"), user.has_password ? t("mine.password.hint") : t("mine.name.hint", { name: user.name }), control);
  const erase = () => eraseAll(row, user.has_password ? { password: control.value } : { name: control.value });
  control.addEventListener("keydown", (event) => {
    if (!commitsText(event)) return;
    event.preventDefault();
    erase();
  });
  const button = el("button", { type: "button", className: "danger", onclick: erase }, t("mine.erase"));
  return el("details", { className: "more-rows" }, el("summary", {}, t("mine.erase.title")), el("p", { className: "row-hint" }, t("mine.erase.what")), row.node, button);
}

async function eraseAll(row, proof) {
  row.say("");
  if (!(await confirmed(t("mine.erase.question"), { yes: t("mine.erase") }))) return;
  try {
    await request("POST", "/api/me/erase", proof);
  } catch (error) {
    row.say(t(error.status === 403 ? "mine.not_confirmed" : "error.general"));
    return;
  }
  for (const key of Object.keys(localStorage)) if (key.startsWith(OURS)) localStorage.removeItem(key);
  location.assign("/signin");
}
