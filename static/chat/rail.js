// The left rail: conversations by day, search, rename in place, delete after a question.

import { byId, el, icon, iconButton } from "./dom.js";
import { language, t } from "./i18n.js";
import { commitsText } from "./keys.js";
import { pathOf } from "./router.js";
import { confirmDelete } from "./dialogs.js";

const SEARCH_WAIT_MS = 200;
const DAY_MS = 86_400_000;

export class Rail {
  constructor(store, list, router) {
    Object.assign(this, { store, list, router, editing: null });
    this.items = byId("conversations");
    this.search = byId("search");
    this.search.addEventListener("input", () => this.searchSoon());
    this.search.addEventListener("keydown", (event) => event.key === "Escape" && this.clearSearch());
    store.on("list", () => this.render());
    store.on("conversation", () => this.render());
  }

  searchSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.list.load(this.search.value.trim()), SEARCH_WAIT_MS);
  }

  clearSearch() {
    this.search.value = "";
    this.searchSoon();
  }

  render() {
    if (this.editing) return; // a title is being typed
    const { items, state, next, query } = this.store.list;
    const groups = new Map();
    for (const item of items) {
      const name = item.is_pinned ? t("rail.pinned") : dayName(item.updated_at);
      groups.set(name, [...(groups.get(name) ?? []), this.row(item)]);
    }
    const nodes = [...groups].map(([name, rows]) => el("section", {}, el("h2", {}, name), el("ul", {}, ...rows)));
    if (state === "loading") nodes.push(el("div", { className: "skeletons", "aria-hidden": "true" }, ...[70, 52, 61, 45].map((w) => el("i", { className: `w${w}` }))));
    else if (state === "unreachable") nodes.push(el("p", { className: "rail-note" }, t("rail.unreachable"), el("button", { type: "button", className: "quiet", onclick: () => this.list.load() }, t("try_again"))));
    else if (items.length === 0) nodes.push(el("p", { className: "rail-note" }, query ? t("rail.nothing_found") : t("rail.empty")));
    if (next) nodes.push(el("button", { type: "button", className: "quiet more", onclick: () => this.list.more() }, t("rail.more")));
    this.items.replaceChildren(...nodes);
  }

  row(item) {
    const title = item.title || t("untitled");
    const isShown = item.id === this.store.conversation.id;
    return el(
      "li",
      { className: isShown ? "row shown" : "row" },
      el("a", { href: pathOf(item.id), "data-conversation": item.id, "aria-current": isShown && "page", title }, title),
      iconButton("pen", t("rail.rename", { title }), (event) => this.edit(event.currentTarget.closest("li"), item)),
      iconButton("trash", t("rail.delete", { title }), () => this.remove(item, title)),
    );
  }

  edit(row, item) {
    const input = el("input", { className: "rename", value: item.title, maxLength: 200, "aria-label": t("rail.new_title") });
    const finish = (isKept) => {
      if (this.editing !== input) return;
      this.editing = null;
      const title = input.value.trim();
      if (isKept && title && title !== item.title) this.list.rename(item.id, title);
      this.render();
    };
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") finish(false);
      else if (commitsText(event)) finish(true);
    });
    input.addEventListener("blur", () => finish(true));
    this.editing = input;
    row.replaceChildren(input);
    input.select();
  }

  async remove(item, title) {
    if (!(await confirmDelete(title)) || !(await this.list.remove(item.id))) return;
    if (this.store.conversation.id === item.id) this.router.go(null);
  }
}

function dayName(stamp) {
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(stamp).setHours(0, 0, 0, 0)) / DAY_MS);
  if (days <= 0) return t("today");
  if (days === 1) return t("yesterday");
  if (days < 7) return t("this_week");
  return new Intl.DateTimeFormat(language, { year: "numeric", month: "long" }).format(new Date(stamp));
}
