// One line of the list: title, first tag, mark, the button for more; a tick while several are picked; a field while it
// is renamed. It is drawn anew only where something of it changed.

import { el, iconButton } from "../parts/dom.js";
import { t } from "../parts/i18n.js";
import { cancels, commitsText } from "../parts/keys.js";
import { pathOf } from "./router.js";

const MAX_TITLE_CHARS = 200;
const MARKS = { running: "rail.running", new: "rail.new" };

export class RowView {
  /** `acts`: openMenu(item, button), rename(item, title). */
  constructor(acts) {
    this.acts = acts;
    this.node = el("li", { className: "row" });
    this.field = null;
  }

  /** `look`: isShown, isNew, isPicking, isPicked, isTabStop. */
  update(item, look) {
    const key = JSON.stringify([item.title, item.tags, item.is_answering, item.is_archived, item.is_pinned, look]);
    Object.assign(this, { item, look });
    if (key === this.key || this.field) return;
    this.key = key;
    this.draw();
  }

  draw() {
    const { item, look } = this;
    const title = titleOf(item);
    this.node.dataset.id = item.id;
    this.node.classList.toggle("shown", look.isShown);
    this.node.classList.toggle("picked", look.isPicking && look.isPicked);
    const mark = markOf(item, look);
    const link = el(
      "a",
      { href: pathOf(item.id), "data-conversation": item.id, "aria-current": look.isShown && "page", title: [title, ...item.tags.map((tag) => `#${tag}`)].join("  "), tabIndex: look.isTabStop ? 0 : -1 },
      el("span", { className: "row-title" }, title),
      item.tags.length ? el("span", { className: "row-tag", "aria-hidden": "true" }, `#${item.tags[0]}`) : null,
      mark ? el("span", { className: `mark ${mark}` }, el("span", { className: "unseen" }, ` (${t(MARKS[mark])})`)) : null,
    );
    const tick = look.isPicking ? el("input", { type: "checkbox", className: "pick", tabIndex: -1, checked: look.isPicked, "aria-label": t("rail.pick", { title }) }) : null;
    const more = look.isPicking ? null : iconButton("more", t("rail.more_of", { title }), (event) => this.acts.openMenu(this.item, event.currentTarget), { tabIndex: -1, "aria-haspopup": "menu" });
    this.node.replaceChildren(...[tick, link, more].filter(Boolean));
  }

  /** Puts a field in the title's place; Enter and leaving keep, Escape does not. */
  edit() {
    const { item } = this;
    const field = el("input", { className: "rename", value: item.title, maxLength: MAX_TITLE_CHARS, "aria-label": t("rail.new_title") });
    const finish = (isKept, isByKey) => {
      if (this.field !== field) return;
      this.field = this.key = null;
      const title = field.value.trim();
      if (isKept && title && title !== item.title) this.acts.rename(item, title);
      this.update(this.item, this.look);
      if (isByKey) this.node.querySelector("a").focus();
    };
    field.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (cancels(event)) finish(false, true);
      else if (commitsText(event)) finish(true, true);
    });
    field.addEventListener("blur", () => finish(true, false));
    this.field = field;
    this.node.replaceChildren(field);
    field.focus();
    field.select();
  }
}

export const titleOf = (item) => item.title || t("untitled");

function markOf(item, { isNew, isShown }) {
  if (item.is_answering) return "running";
  return isNew && !isShown ? "new" : null;
}
