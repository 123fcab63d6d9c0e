// Settings: how the page looks, how the field behaves, what is kept about the person.

import { openSheet } from "../parts/sheet.js";
import { el } from "../parts/dom.js";
import { language, t } from "../parts/i18n.js";
import { prefer, preferences } from "../state/preferences.js";
import { choice, Row, section } from "./form.js";
import { myDataSection } from "./mydata.js";
import { openShortcuts } from "./shortcuts.js";

const LANGUAGES = [["zh-hans", "中文"], ["en", "English"]];
const THEMES = ["system", "light", "dark"];
const TEXT_SIZES = ["standard", "large", "larger"];

/** `changed()` runs after each change of how the field behaves. */
export function openSettings(boot, changed) {
  openSheet(t("settings.title"), [look(), field(changed), myDataSection(boot.user)]);
}

/** Cookies keep these, and the module beside every page sets them: see account/preferences.js. */
function look() {
  const root = document.documentElement.dataset;
  const set = (name) => (value) => document.dispatchEvent(new CustomEvent("preference", { detail: { name, value } }));
  return section(
    t("settings.look"),
    choice("language", t("settings.language"), LANGUAGES, language, set("language")),
    choice("theme", t("settings.theme"), THEMES.map((name) => [name, t(`theme.${name}`)]), root.theme, set("theme")),
    choice("text-size", t("settings.text_size"), TEXT_SIZES.map((name) => [name, t(`text_size.${name}`)]), root.textSize ?? "standard", set("textSize")),
    el("p", { className: "row-hint" }, t("settings.motion")),
  );
}

function field(changed) {
  const { sendKey, warmsTyping } = preferences();
  const keep = (changes) => {
    prefer(changes);
    changed();
  };
  const keys = [["enter", t("send_key.enter")], ["ctrl-enter", t("send_key.ctrl_enter")]];
  const early = el("input", { type: "checkbox", checked: warmsTyping, onchange: () => keep({ warmsTyping: early.checked }) });
  return section(
    t("settings.field"),
    choice("send-key", t("settings.send_key"), keys, sendKey, (value) => keep({ sendKey: value })),
    el("p", { className: "row-hint" }, t("settings.send_key.hint")),
    new Row(t("settings.early"), t("settings.early.hint"), early).node,
    el("div", { className: "button-line" }, el("button", { type: "button", onclick: openShortcuts }, t("shortcuts.title"))),
  );
}
