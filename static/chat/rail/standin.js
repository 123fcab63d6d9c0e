// What stands where no line does: while the list comes, where it is empty, where it could not be had, and behind its end.

import { el } from "../parts/dom.js";
import { t } from "../parts/i18n.js";

const WIDTHS = [70, 52, 61, 45, 84, 52];

/** `acts`: again(), more(). */
export function standIn(list, acts) {
  const { state, items, next } = list;
  if (state === "loading") return [el("div", { className: "row-skeletons", "aria-hidden": "true" }, ...WIDTHS.map((width) => el("i", { className: `w${width}` })))];
  if (state === "unreachable" || state === "stuck") return [note(t("rail.unreachable"), t("try_again"), state === "stuck" ? acts.more : acts.again)];
  if (next) return [el("button", { type: "button", className: "quiet more", onclick: acts.more }, t("rail.more"))];
  return items.length || state === "busy" ? [] : [note(emptyWords(list))];
}

function emptyWords({ query, tag, isArchived }) {
  if (query) return t("rail.nothing_found");
  if (tag) return t("rail.no_tagged", { tag });
  return t(isArchived ? "rail.no_archived" : "rail.empty");
}

const note = (words, label, act) =>
  el("p", { className: "rail-note" }, words, label ? el("button", { type: "button", className: "quiet", onclick: act }, label) : null);
