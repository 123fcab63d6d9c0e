// A block of code: its language, a switch that wraps long lines, and a copy button.

import { el, icon } from "../parts/dom.js";
import { t } from "../parts/i18n.js";

export function codeBlock(language, content) {
  const wrap = el("button", { type: "button", className: "quiet", title: t("wrap"), "aria-label": t("wrap"), "aria-pressed": "false", onclick: toggleWrap }, icon("wrap"));
  const copy = el("button", { type: "button", className: "quiet", "data-copy-code": true }, icon("copy"), t("copy"));
  const code = el("code", {}, document.createTextNode(content));
  return el(
    "div",
    { className: "code", "data-language": language.toLowerCase() },
    el("div", { className: "code-head" }, el("span", {}, language), wrap, copy),
    el("pre", { tabIndex: 0 }, code),
  );
}

function toggleWrap({ currentTarget }) {
  const isWrapped = currentTarget.closest(".code").classList.toggle("wrapped");
  currentTarget.setAttribute("aria-pressed", String(isWrapped));
}
