// The sheet for sharing a chat by link: what is shared, a new link, and the links there are.

import { listShares, makeShare, revokeShare } from "../line/chats.js";
import { copy } from "../parts/copy.js";
import { confirmed } from "../parts/dialogs.js";
import { el, icon, iconButton } from "../parts/dom.js";
import { errorText, formatNumber, locale, t } from "../parts/i18n.js";
import { openSheet } from "../parts/sheet.js";
import { titleOf } from "./row.js";

const moment = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });

export function openSharing(item) {
  new SharingSheet(item).open();
}

class SharingSheet {
  constructor(item) {
    this.item = item;
    this.make = el("button", { type: "button", className: "primary", onclick: () => this.makeLink() }, t("share.make"));
    this.made = el("div", { className: "made-link", role: "status" });
    this.trouble = el("p", { className: "note", role: "alert", hidden: true });
    this.links = el("ul", { className: "share-links" });
  }

  open() {
    const heading = el("h3", { className: "sheet-label" }, t("share.links"));
    const words = [t("share.what"), t("share.who")].map((text) => el("p", {}, text));
    openSheet(t("share.of", { title: titleOf(this.item) }), [...words, this.make, this.trouble, this.made, heading, this.links]);
    this.refresh();
  }

  async makeLink() {
    this.make.disabled = true;
    await this.trying(async () => {
      const { url } = await makeShare(this.item.id);
      this.showMade(new URL(url, location.origin).href);
      await this.refresh();
    });
    this.make.disabled = false;
  }

  showMade(address) {
    const field = el("input", { type: "text", readOnly: true, value: address, "aria-label": t("share.address") });
    field.addEventListener("focus", () => field.select());
    const button = iconButton("copy", t("share.copy"), (event) => copy(address, event.currentTarget));
    this.made.replaceChildren(el("div", { className: "field-row" }, field, button), el("p", { className: "hint" }, t("share.once")));
    field.focus();
  }

  async refresh() {
    await this.trying(async () => {
      const { items } = await listShares(this.item.id);
      this.links.replaceChildren(...(items.length ? items.map((link) => this.line(link)) : [el("li", { className: "hint" }, t("share.none"))]));
    });
  }

  line({ id, created_at, num_messages, revoked_at }) {
    const size = el("small", {}, t("share.messages", { count: num_messages, n: formatNumber(num_messages) }));
    const words = el("span", {}, moment.format(new Date(created_at)), size);
    if (revoked_at) return el("li", { className: "revoked" }, icon("share"), words, el("em", {}, t("share.revoked")));
    return el("li", {}, icon("share"), words, el("button", { type: "button", className: "quiet", onclick: () => this.revoke(id) }, t("share.revoke")));
  }

  async revoke(id) {
    if (!(await confirmed(t("share.revoke_question"), { yes: t("share.revoke") }))) return;
    await this.trying(() => revokeShare(id));
    this.made.replaceChildren();
    await this.refresh();
  }

  async trying(work) {
    this.trouble.hidden = true;
    try {
      await work();
    } catch ({ code }) {
      this.trouble.textContent = errorText(code, {});
      this.trouble.hidden = false;
    }
  }
}
