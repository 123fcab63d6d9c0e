// A conversation without messages: a greeting, three starters, and what the model is and can do.

import { el } from "./dom.js";
import { formatNumber, t } from "./i18n.js";

const STARTERS = ["starter.explain", "starter.write", "starter.plan"];

/** `start(text)` puts a starter into the composer. */
export function emptyState(boot, start) {
  const buttons = STARTERS.map((key) => el("button", { type: "button", onclick: () => start(t(key)) }, t(key)));
  return el(
    "section",
    { className: "empty" },
    el("h2", {}, t(boot.user.is_guest ? "greeting.guest" : "greeting", { name: boot.user.name })),
    el("p", {}, modelWords(boot.model)),
    el("div", { className: "starters" }, ...buttons),
    el("p", { className: "hint" }, t("hint.keys")),
  );
}

function modelWords(model) {
  if (!model) return t("model.away");
  const words = model.max_context ? t("model.with_context", { name: model.name, n: formatNumber(model.max_context) }) : t("model.plain", { name: model.name });
  return model.is_trial ? `${words} ${t("model.trial")}` : words;
}
