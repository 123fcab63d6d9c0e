// The page of one's API keys: those there are, a form for a new one, and what is done with each. Every change asks the
// server for the list again, so that the page shows what holds.

import { confirmed } from "../chat/parts/dialogs.js";
import { byId, el } from "../chat/parts/dom.js";
import { t } from "../chat/parts/i18n.js";
import { say } from "../chat/parts/say.js";
import { troubleText } from "../chat/parts/trouble.js";
import { request } from "../chat/line/request.js";
import { newKeyForm, rotationForm } from "./keyforms.js";
import { isEnded, keyRow } from "./keyrow.js";
import { shownOnce } from "./secret.js";

const PATH = "/api/keys";

class KeysPage {
  constructor() {
    this.add = el("button", { type: "button", className: "primary", onclick: () => this.openForm() }, t("keys.new"));
    this.trouble = el("p", { className: "note", role: "alert", hidden: true });
    this.panel = el("div", { className: "key-panel", hidden: true });
    this.heading = el("h2", { tabIndex: -1 }, t("keys.yours"));
    this.list = el("div", {});
    byId("keys").append(el("div", { className: "keys-head" }, this.heading, this.add), this.trouble, this.panel, this.list);
    this.load();
  }

  load() {
    return this.trying(async () => this.draw(await request("GET", PATH)));
  }

  draw(keys) {
    const now = new Date();
    const [ended, usable] = [true, false].map((wanted) => keys.filter((key) => isEnded(key, now) === wanted));
    const acts = { rotate: (key, row) => this.rotate(key, row), revoke: (key) => this.revoke(key) };
    const rows = (some) => el("ul", { className: "key-list" }, ...some.map((key) => keyRow(key, now, acts)));
    this.list.replaceChildren(usable.length ? rows(usable) : el("p", { className: "no-keys" }, t("keys.none")));
    if (ended.length) this.list.append(el("details", { className: "more-rows" }, el("summary", {}, t("keys.ended", { n: ended.length })), rows(ended)));
  }

  openForm() {
    const form = newKeyForm((wanted) => this.trying(async () => this.show(await request("POST", PATH, wanted))), () => this.closePanel());
    this.open(el("section", {}, el("h3", {}, t("keys.new")), form));
    form.querySelector("input").focus();
  }

  /** The form opens in the row of the key that is to be replaced. */
  rotate(key, row) {
    const close = () => (form.remove(), row.querySelector("[data-act=rotate]").focus());
    const replaced = async (grace_s) => this.show(await request("POST", `${PATH}/${key.id}/rotate`, { grace_s }));
    const form = rotationForm((grace_s) => this.trying(() => replaced(grace_s)), close);
    row.querySelector("form")?.remove();
    row.append(form);
    form.querySelector("select").focus();
  }

  async revoke(key) {
    const { name } = key;
    if (!(await confirmed(t("keys.revoke.question", { name }), { yes: t("keys.revoke") }))) return;
    await this.trying(async () => {
      await request("DELETE", `${PATH}/${key.id}`);
      await this.load();
      say(t("keys.revoked", { name }));
    });
    this.heading.focus();
  }

  /** A key that was just made. */
  async show(made) {
    this.open(shownOnce(made, () => this.closePanel()));
    this.panel.querySelector("button").focus();
    await this.load();
  }

  open(node) {
    this.panel.replaceChildren(node);
    this.panel.hidden = false;
    this.add.hidden = true;
  }

  closePanel() {
    this.panel.hidden = true;
    this.panel.replaceChildren();
    this.add.hidden = false;
    this.add.focus();
  }

  async trying(work) {
    this.trouble.hidden = true;
    try {
      await work();
    } catch (error) {
      if (error.status === 401) location.assign(`/signin?next=${location.pathname}`);
      this.trouble.textContent = troubleText(error);
      this.trouble.hidden = false;
    }
  }
}

new KeysPage();
