// The sheet of shortcuts, opened by `?` or a button.

import { openSheet } from "../parts/sheet.js";
import { el } from "../parts/dom.js";
import { t } from "../parts/i18n.js";
import { hasTouchOnly, sendsWith } from "../parts/keys.js";

const isApple = /mac|iphone|ipad/i.test(navigator.userAgentData?.platform ?? navigator.platform);
const NAMES = { Ctrl: isApple ? "⌘" : "Ctrl", Alt: isApple ? "⌥" : "Alt", Shift: isApple ? "⇧" : "Shift", Enter: "Enter ↵" };

/** [what it does, the keys], those of the field first, then those of the list of chats. */
const shortcuts = () => [
  ["shortcut.send", sendsWith()],
  ["shortcut.new_line", sendsWith().length > 1 || hasTouchOnly() ? ["Enter"] : ["Shift", "Enter"]],
  ["shortcut.templates", ["/"]],
  ["shortcut.stop", ["Esc"]],
  ["shortcut.field", ["/"]],
  ["shortcut.search", ["Ctrl", "K"]],
  ["shortcut.new_chat", ["Ctrl", "Shift", "O"]],
  ["shortcut.list_walk", ["↑", "↓"]],
  ["shortcut.list_rename", ["F2"]],
  ["shortcut.list_delete", ["Delete"]],
  ["shortcut.list_pick", [t("shortcut.space")]],
  ["shortcut.help", ["?"]],
];

export function openShortcuts() {
  const rows = shortcuts().map(([words, keys]) =>
    el("div", {}, el("dt", {}, t(words)), el("dd", {}, ...keys.map((key) => el("kbd", {}, NAMES[key] ?? key)))),
  );
  openSheet(t("shortcuts.title"), [el("dl", { className: "shortcuts" }, ...rows)]);
}

/** `?` opens the sheet wherever nothing is being typed. */
export function listenForHelp() {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "?" || event.ctrlKey || event.metaKey || event.target.closest?.("input, textarea, select, [contenteditable]")) return;
    event.preventDefault();
    openShortcuts();
  });
}
