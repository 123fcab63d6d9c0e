// The sheet of tags: those of one chat, or one more for several.

import { listTags } from "../line/chats.js";
import { el, icon } from "../parts/dom.js";
import { formatNumber, t } from "../parts/i18n.js";
import { commitsText } from "../parts/keys.js";
import { closeSheet, openSheet } from "../parts/sheet.js";
import { titleOf } from "./row.js";

const MAX_TAG_CHARS = 40;
const MOST_TAGS = 20;

/** The tags of one chat, to be added and taken away. */
export function openTags(item, list, acts) {
  const chips = el("ul", { className: "chips" });
  const full = el("p", { className: "hint" });
  const keep = async (tags) => {
    item = { ...item, tags };
    draw();
    if (!(await acts.change(list.find(item.id) ?? item, { tags }))) item = list.find(item.id) ?? item;
    draw();
  };
  const chip = (tag) => {
    const label = t("tags.remove", { tag });
    const button = el("button", { type: "button", title: label, "aria-label": label, onclick: () => keep(item.tags.filter((other) => other !== tag)) }, icon("close"));
    return el("li", {}, el("span", {}, `#${tag}`), button);
  };
  const draw = () => {
    chips.replaceChildren(...item.tags.map(chip));
    full.textContent = item.tags.length ? "" : t("tags.none");
  };
  const add = (tag) => item.tags.length < MOST_TAGS && !item.tags.includes(tag) && keep([...item.tags, tag]);
  draw();
  const { nodes, field } = adder(add);
  openSheet(t("tags.of", { title: titleOf(item) }), [...nodes, chips, full]);
  field.focus();
}

/** One more tag for all `items`. */
export function openTagsOfMany(items, acts) {
  const { nodes, field } = adder(async (tag) => {
    if (await acts.changeMany("tag", items, tag)) closeSheet();
  });
  openSheet(t("tags.of_many", { count: items.length, n: formatNumber(items.length) }), nodes);
  field.focus();
}

/** A field for a new tag, which offers those there are; `add(tag)` gets it. */
function adder(add) {
  const known = el("datalist", { id: "known-tags" });
  listTags().then(({ items }) => known.replaceChildren(...items.map(({ tag }) => el("option", { value: tag })))).catch(() => null);
  const field = el("input", { id: "new-tag", type: "text", maxLength: MAX_TAG_CHARS, autocomplete: "off" });
  field.setAttribute("list", known.id);
  const commit = () => {
    const tag = field.value.trim().replace(/^#+/, "").trim();
    field.value = "";
    if (tag) add(tag);
  };
  field.addEventListener("keydown", (event) => commitsText(event) && commit());
  const button = el("button", { type: "button", onclick: commit }, t("tags.add"));
  return { field, nodes: [el("label", { className: "sheet-label", for: field.id }, t("tags.new")), el("div", { className: "field-row" }, field, button), known] };
}
