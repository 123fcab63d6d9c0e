// One key in the list: its name, how it begins, what it may do, its days, and what can be done with it.

import { el } from "../chat/parts/dom.js";
import { formatWhen, locale, t } from "../chat/parts/i18n.js";

const day = new Intl.DateTimeFormat(locale, { dateStyle: "medium" });
const SCOPES = { chat: "scope.chat", embeddings: "scope.embeddings", usage: "scope.usage", "cache-admin": "scope.cache_admin" };

export const scopeWords = (scope) => t(SCOPES[scope]);

/** A key that opens nothing any more. */
export const isEnded = ({ revoked_at, expires_at }, now) => Boolean(revoked_at) || (expires_at !== null && new Date(expires_at) <= now);

/** `acts` are { rotate(key, row), revoke(key) }. */
export function keyRow(key, now, acts) {
  const { name, prefix, scopes, created_at, last_used_at } = key;
  const facts = [
    [t("keys.may"), scopes.map(scopeWords).join(", ")],
    [t("keys.made"), day.format(new Date(created_at))],
    [t("keys.used"), last_used_at ? formatWhen(new Date(last_used_at)) : t("keys.never_used")],
    endOf(key, now),
  ];
  const row = el(
    "li",
    { className: isEnded(key, now) ? "ended" : null },
    el("div", { className: "key-name" }, el("h3", {}, name), el("code", {}, `${prefix}…`), ...stateOf(key, now)),
    el("dl", {}, ...facts.map(([words, value]) => el("div", {}, el("dt", {}, words), el("dd", {}, value)))),
  );
  if (!isEnded(key, now)) row.append(el("div", { className: "button-line" }, ...buttons(key, row, acts)));
  return row;
}

function endOf({ revoked_at, expires_at }, now) {
  if (revoked_at) return [t("keys.ended_on"), formatWhen(new Date(revoked_at))];
  if (!expires_at) return [t("keys.ends"), t("keys.never_ends")];
  const end = new Date(expires_at);
  return [end <= now ? t("keys.ended_on") : t("keys.ends"), formatWhen(end)];
}

function stateOf(key, now) {
  if (key.revoked_at) return [badge("revoked", t("keys.state.revoked"))];
  if (isEnded(key, now)) return [badge("expired", t("keys.state.expired"))];
  if (key.replaced_by_id) return [badge("replaced", t("keys.state.replaced"))];
  return [badge("active", t("keys.state.active"))];
}

const badge = (state, words) => el("span", { className: `state ${state}` }, words);

/** One that was replaced is not replaced again: the one in its place is. */
function buttons(key, row, acts) {
  const button = (act, words, label, onclick) => el("button", { type: "button", "aria-label": label, onclick, "data-act": act }, words);
  const revoke = button("revoke", t("keys.revoke"), t("keys.revoke.of", { name: key.name }), () => acts.revoke(key));
  if (key.replaced_by_id) return [revoke];
  return [button("rotate", t("keys.rotate"), t("keys.rotate.of", { name: key.name }), () => acts.rotate(key, row)), revoke];
}
