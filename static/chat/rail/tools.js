// The line between search and list: which list is shown, how many a search found, picking several, and files.

import { el, icon, iconButton } from "../parts/dom.js";
import { formatNumber, t } from "../parts/i18n.js";
import { openMenu } from "../parts/menu.js";
import { listTags } from "../line/chats.js";

const MOST_COUNTED = 1000;
const MOST_TAGS = 12;

export class Tools {
  /** `acts`: show(wanted), pickSeveral(), openImport(), exportAll(form). */
  constructor(store, acts) {
    Object.assign(this, { store, acts });
    this.name = el("span", {});
    this.view = el("button", { type: "button", className: "quiet view", "aria-haspopup": "menu", onclick: () => this.openViews() }, this.name, icon("chevron"));
    this.back = iconButton("close", t("rail.back_to_all"), () => acts.show({ tag: "", isArchived: false }));
    this.found = el("span", { className: "found", role: "status" });
    const pick = iconButton("pick", t("rail.pick_several"), () => acts.pickSeveral());
    const more = iconButton("more", t("rail.files"), (event) => this.openFiles(event.currentTarget), { "aria-haspopup": "menu" });
    this.node = el("div", { className: "rail-tools" }, this.view, this.back, this.found, pick, more);
    store.on("list", () => this.render());
    this.render();
  }

  render() {
    const { query, tag, isArchived, state, numFound } = this.store.list;
    this.name.textContent = tag ? `#${tag}` : t(isArchived ? "rail.archived" : "rail.all");
    this.back.hidden = !tag && !isArchived;
    const words = query ? (state === "ready" ? foundWords(numFound) : t("rail.searching")) : "";
    if (this.found.textContent !== words) this.found.textContent = words;
  }

  async openViews() {
    const tags = await listTags().catch(() => ({ items: [] }));
    const { tag, isArchived } = this.store.list;
    const entry = (label, name, wanted, isChosen) => ({ icon: isChosen ? "check" : name, label, act: () => this.acts.show(wanted) });
    openMenu(this.view, t("rail.views"), [
      entry(t("rail.all"), "chats", { tag: "", isArchived: false }, !tag && !isArchived),
      entry(t("rail.archived"), "archive", { tag: "", isArchived: true }, !tag && isArchived),
      ...(tags.items.length ? ["line"] : []),
      ...tags.items.slice(0, MOST_TAGS).map((item) =>
        entry(t("rail.tag_of", { tag: item.tag, n: formatNumber(item.num_conversations) }), "tag", { tag: item.tag, isArchived }, item.tag === tag),
      ),
    ]);
  }

  openFiles(button) {
    openMenu(button, t("rail.files"), [
      { icon: "upload", label: t("import.begin"), act: () => this.acts.openImport() },
      "line",
      { icon: "download", label: t("export.all.json"), act: () => this.acts.exportAll("json") },
      { icon: "download", label: t("export.all.markdown"), act: () => this.acts.exportAll("markdown") },
    ]);
  }
}

function foundWords(num) {
  if (num === null) return "";
  return num >= MOST_COUNTED ? t("rail.found_many", { n: formatNumber(MOST_COUNTED) }) : t("rail.found", { count: num, n: formatNumber(num) });
}
