// The left rail: the list of chats with its search, its tools and what is done with one chat or with several.

import { byId, el } from "../parts/dom.js";
import { t } from "../parts/i18n.js";
import { place } from "../parts/place.js";
import { Acts } from "./acts.js";
import { PickBar } from "./bar.js";
import { ChatMenu } from "./chatmenu.js";
import { exportAll } from "./exporting.js";
import { openImport } from "./importing.js";
import { listenForKeys } from "./keys.js";
import { Rows } from "./rows.js";
import { setUpSearch } from "./search.js";
import { Selection } from "./selection.js";
import { standIn } from "./standin.js";
import { Tools } from "./tools.js";
import { Undo } from "./undo.js";

export class Rail {
  constructor(store, list, router, marks) {
    Object.assign(this, { store, list, marks });
    this.box = byId("conversations");
    this.search = byId("search");
    this.acts = new Acts(store, list, router);
    this.undo = new Undo();
    this.selection = new Selection(() => this.render());
    this.menu = new ChatMenu({ store, list, acts: this.acts, undo: this.undo, rename: (id) => this.rename(id), hasLine: (id) => Boolean(this.rows.link(id)?.checkVisibility()) });
    this.lines = el("div", {});
    this.after = el("div", { className: "after-list" });
    this.box.append(this.lines, this.after);
    this.rows = new Rows(this.lines, {
      openMenu: (item, button) => this.menu.open(item, button),
      rename: (item, title) => this.acts.change(item, { title }),
    });
    this.bar = new PickBar(store, this.selection, this.acts, this.undo);
    this.box.before(new Tools(store, this).node);
    this.box.after(this.undo.node, this.bar.node);
    setUpSearch(this.search, (query) => list.load({ query }));
    listenForKeys(this.lines, this.search, this);
    this.lines.addEventListener("click", (event) => this.clicked(event));
    this.more = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && list.more(), { root: this.box, rootMargin: "400px" });
    store.on("list", () => this.render());
    store.on("conversation", () => this.opened());
    store.on("thread", () => this.opened());
    marks.on(() => this.opened());
    document.addEventListener("visibilitychange", () => document.hidden || this.render()); // another day may have begun
  }

  /** What is looked at is not new. */
  opened() {
    const { id } = this.store.conversation;
    if (id && this.marks.all().has(id)) this.marks.remove(id);
    else this.render();
  }

  render() {
    const { list, conversation } = this.store;
    const fresh = this.marks.all();
    document.documentElement.toggleAttribute("data-news", fresh.size > 0);
    const { isOn: isPicking, ids } = this.selection;
    this.selection.keep(list.items.map((item) => item.id));
    const stop = list.items.some((item) => item.id === conversation.id) ? conversation.id : list.items[0]?.id;
    this.rows.show(list.items, ({ id }) => ({ isShown: id === conversation.id, isNew: fresh.has(id), isPicking, isPicked: ids.has(id), isTabStop: id === stop }));
    this.box.setAttribute("aria-busy", String(list.state === "busy" || list.state === "loading"));
    place(this.after, standIn(list, { again: () => this.list.load(), more: () => this.list.more() }));
    this.more.disconnect();
    if (list.next && list.state === "ready") this.more.observe(this.after);
    this.bar.render();
  }

  clicked(event) {
    const id = event.target.closest("li")?.dataset.id;
    if (!id || !this.selection.isOn || !event.target.closest("a, .pick")) return;
    // The router would open the chat.
    event.stopPropagation();
    if (!event.target.closest(".pick")) event.preventDefault();
    if (event.shiftKey) this.selection.extend(id, this.rows.ids());
    else this.selection.toggle(id);
  }

  show(wanted) {
    this.selection.end();
    this.list.load(wanted);
  }

  rename(id) {
    this.rows.view(id)?.edit();
  }

  remove(id) {
    if (this.selection.isOn) this.bar.remove();
    else this.menu.remove(this.list.find(id));
  }

  pick(id) {
    if (this.selection.isOn) this.selection.toggle(id);
    else this.selection.begin(id);
  }

  pickSeveral() {
    if (this.selection.isOn) this.selection.end();
    else this.selection.begin();
  }

  pickAll() {
    this.selection.all(this.rows.ids());
  }

  endPicking() {
    this.selection.end();
  }

  isPicking() {
    return this.selection.isOn;
  }

  openImport() {
    openImport(this.store.boot.limits.max_import_bytes, () => this.list.refresh());
  }

  exportAll(form) {
    exportAll(form);
  }
}
