// A conversation without messages: a greeting, what one may begin with, and what the model is and can do.

import { el } from "../parts/dom.js";
import { formatNumber, language, t } from "../parts/i18n.js";
import { excerpt } from "../composer/excerpt.js";
import { ranked } from "../composer/rank.js";

const NUM_STARTERS = 3;
const OWN_STARTERS = ["starter.explain", "starter.write", "starter.plan"];

/** `model` answers; `templates` are those to begin with; `start(text)` puts a text into the field, `take(template)` a template; `openHelp()` shows the shortcuts. */
export function emptyState({ user }, model, { templates, start, take, openHelp }) {
  const hint = el("p", { className: "hint" }, t("hint.templates"), " ", el("button", { type: "button", className: "quiet", onclick: openHelp }, t("shortcuts.title")));
  return el(
    "section",
    { className: "empty" },
    el("h2", {}, t(user.is_guest ? "greeting.guest" : "greeting", { name: user.name })),
    el("p", {}, modelWords(model)),
    el("div", { className: templates.isKnown ? "starters" : "starters unknown" }, ...starters(templates, start, take)),
    hint,
  );
}

/** Those that this person and everybody use most; the page's own fill what is left of three, and keep the room before. */
function starters({ items, history }, start, take) {
  const known = ranked(items.filter((item) => item.is_starter && item.language === language), { history }).slice(0, NUM_STARTERS);
  const own = OWN_STARTERS.slice(0, NUM_STARTERS - known.length);
  return [
    ...known.map((item) => el("button", { type: "button", onclick: () => take(item) }, el("b", {}, item.title), excerpt(item.body))),
    ...own.map((key) => el("button", { type: "button", onclick: () => start(t(key)) }, t(key))),
  ];
}

function modelWords(model) {
  if (!model) return t("model.away");
  const words = model.max_context ? t("model.with_context", { name: model.name, n: formatNumber(model.max_context) }) : t("model.plain", { name: model.name });
  return model.is_trial ? `${words} ${t("model.trial")}` : words;
}
