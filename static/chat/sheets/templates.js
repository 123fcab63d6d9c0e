// The templates sheet: what there is, with one's own to be made, changed and erased.

import { openSheet } from "../parts/sheet.js";
import { confirmed } from "../parts/dialogs.js";
import { byId, el, iconButton } from "../parts/dom.js";
import { language, t } from "../parts/i18n.js";
import { excerpt } from "../composer/excerpt.js";
import { Row } from "./form.js";

const LANGUAGES = ["en", "zh-hans"];
const MAX = { title: 120, body: 20_000 };

export class TemplatesSheet {
  /** `use(template)` puts one into the field. */
  constructor(templates, use, user) {
    Object.assign(this, { templates, use, user });
  }

  open() {
    openSheet(t("templates.title"), []);
    this.list();
    this.templates.refresh().then(() => this.isListing && this.list(), () => null);
  }

  /** Whether the list is what is seen: a form that was opened meanwhile stays. */
  get isListing() {
    return byId("sheet-body").contains(this.listNode);
  }

  /** The focus stays in the sheet when what had it makes way. */
  show(node, title = t("templates.title")) {
    const hadFocus = byId("sheet-body").contains(document.activeElement);
    byId("sheet-title").textContent = title;
    byId("sheet-body").replaceChildren(node);
    if (hadFocus) node.querySelector("input, .sheet-end button").focus();
  }

  list() {
    const isOther = (item) => Number(item.language !== language);
    const items = [...this.templates.items].sort((a, b) => isOther(a) - isOther(b) || a.title.localeCompare(b.title, language));
    const add = el("button", { type: "button", onclick: () => this.edit({ title: "", body: "", language, is_starter: false }) }, t("templates.new"));
    const rows = items.map((item) => this.row(item));
    const what = rows.length ? el("ul", { className: "template-list" }, ...rows) : el("p", { className: "row-hint" }, t("templates.none"));
    this.listNode = el("div", { className: "sheet-form" }, el("p", { className: "row-hint" }, t("templates.hint")), what, el("div", { className: "sheet-end" }, add));
    this.show(this.listNode);
  }

  row(item) {
    const { title } = item;
    const mayChange = !item.is_shared || this.user.is_staff;
    const kinds = [item.is_shared && t("templates.shared"), item.is_starter && t("templates.starter")].filter(Boolean).join(" · ");
    return el(
      "li",
      {},
      el("button", { type: "button", className: "template", title: t("templates.use", { title }), onclick: () => this.use(item) }, el("b", {}, title), excerpt(item.body), kinds ? el("small", {}, kinds) : null),
      mayChange ? iconButton("pen", t("templates.edit", { title }), () => this.edit(item)) : null,
      mayChange ? iconButton("trash", t("templates.erase", { title }), () => this.erase(item)) : null,
    );
  }

  edit(item) {
    const title = new Row(t("templates.name"), "", el("input", { type: "text", maxLength: MAX.title, value: item.title, autocomplete: "off" }));
    const body = new Row(t("templates.body"), t("templates.body.hint"), el("textarea", { rows: 8, maxLength: MAX.body, value: item.body }));
    const options = LANGUAGES.map((name) => el("option", { value: name, selected: name === item.language }, t(`language.${name}`)));
    const tongue = new Row(t("settings.language"), "", el("select", {}, ...options));
    const starter = new Row(t("templates.is_starter"), t("templates.is_starter.hint"), el("input", { type: "checkbox", checked: item.is_starter }));
    const shared = new Row(t("templates.is_shared"), t("templates.is_shared.hint"), el("input", { type: "checkbox" }));
    const state = el("p", { className: "saved", role: "status" });
    const save = (event) => {
      event.preventDefault();
      for (const row of [title, body]) row.say(row.control.value.trim() ? "" : t("templates.needed"));
      if (!title.control.value.trim() || !body.control.value.trim()) return;
      const columns = { title: title.control.value.trim(), body: body.control.value, language: tongue.control.value, is_starter: starter.control.checked };
      this.save(item.id, item.id ? columns : { ...columns, is_shared: shared.control.checked }, state);
    };
    const back = el("button", { type: "button", onclick: () => this.list() }, t("back"));
    const end = el("div", { className: "sheet-end" }, el("button", { className: "primary" }, t("save")), back, state);
    const rows = [title, body, tongue, starter, ...(this.user.is_staff && !item.id ? [shared] : [])].map((row) => row.node);
    this.show(el("form", { className: "sheet-form", novalidate: true, onsubmit: save }, ...rows, end), t(item.id ? "templates.change" : "templates.new"));
  }

  async save(id, columns, state) {
    try {
      await this.templates.save(id, columns);
      this.list();
    } catch (error) {
      state.textContent = error.status === 400 ? error.message : t("error.not_saved");
    }
  }

  async erase(item) {
    if (!(await confirmed(t("templates.erase.question", { title: item.title })))) return;
    await this.templates.erase(item.id).catch(() => null);
    this.list();
  }
}
