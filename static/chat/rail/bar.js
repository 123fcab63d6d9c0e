// The bar of what can be done with the picked chats.

import { confirmed } from "../parts/dialogs.js";
import { el, iconButton } from "../parts/dom.js";
import { formatNumber, t } from "../parts/i18n.js";
import { exportPicked } from "./exporting.js";
import { openMenu } from "../parts/menu.js";
import { openTagsOfMany } from "./tags.js";

export class PickBar {
  constructor(store, selection, acts, undo) {
    Object.assign(this, { store, selection, acts, undo });
    this.count = el("span", { role: "status" });
    const button = (icon, key, act) => iconButton(icon, t(key), act);
    this.archive = button("archive", "rail.archive", () => this.setArchived());
    this.buttons = [
      this.archive,
      button("pin", "rail.pin", () => this.setPinned()),
      button("tag", "rail.tags", () => openTagsOfMany(this.picked(), this.acts)),
      iconButton("download", t("export"), (event) => this.openExport(event.currentTarget), { "aria-haspopup": "menu" }),
      button("trash", "delete", () => this.remove()),
    ];
    const end = button("close", "rail.end_picking", () => selection.end());
    this.node = el("div", { className: "pick-bar", role: "toolbar", "aria-label": t("rail.picked_do"), hidden: true }, this.count, ...this.buttons, end);
  }

  render() {
    const { isOn, ids } = this.selection;
    this.node.hidden = !isOn;
    if (!isOn) return;
    this.count.textContent = t("rail.picked", { count: ids.size, n: formatNumber(ids.size) });
    const label = t(this.store.list.isArchived ? "rail.unarchive" : "rail.archive");
    Object.assign(this.archive, { title: label, ariaLabel: label });
    for (const button of this.buttons) button.disabled = ids.size === 0;
  }

  picked() {
    return this.store.list.items.filter((item) => this.selection.ids.has(item.id));
  }

  async setArchived() {
    const items = this.picked();
    const isBack = this.store.list.isArchived;
    if (!(await this.acts.changeMany(isBack ? "unarchive" : "archive", items))) return;
    this.selection.end();
    const words = t(isBack ? "rail.unarchived_many" : "rail.archived_many", { count: items.length, n: formatNumber(items.length) });
    this.undo.offer(words, () => this.acts.changeMany(isBack ? "archive" : "unarchive", items));
  }

  /** Pins them all; unpins them where all are pinned. */
  async setPinned() {
    const items = this.picked();
    if (await this.acts.changeMany(items.every((item) => item.is_pinned) ? "unpin" : "pin", items)) this.selection.end();
  }

  openExport(button) {
    const ids = this.picked().map((item) => item.id);
    const act = (form) => () => exportPicked(ids, form).catch(() => this.store.announce("notice", { code: "general" }));
    openMenu(button, t("export"), [
      { icon: "download", label: t("export.json"), act: act("json") },
      { icon: "download", label: t("export.markdown"), act: act("markdown") },
    ]);
  }

  async remove() {
    const items = this.picked();
    if (!items.length || !(await confirmed(t("delete.many", { count: items.length, n: formatNumber(items.length) })))) return;
    if (await this.acts.remove(items)) this.selection.end();
  }
}
