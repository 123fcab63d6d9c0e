// The lines of the list in their groups. Views are kept by id: whatever changes touches its own line only.

import { el } from "../parts/dom.js";
import { locale, t } from "../parts/i18n.js";
import { place } from "../parts/place.js";
import { groupsOf } from "./order.js";
import { RowView } from "./row.js";

export class Rows {
  constructor(box, acts) {
    Object.assign(this, { box, acts, views: new Map(), groups: new Map() });
  }

  /** Shows `items`; `lookOf(item)` says how each of them looks. */
  show(items, lookOf) {
    const focused = this.box.contains(document.activeElement) ? document.activeElement : null;
    const focusedId = focused?.closest("li")?.dataset.id;
    const kept = new Set(items.map((item) => item.id));
    for (const id of this.views.keys()) if (!kept.has(id)) this.views.delete(id);
    const sections = groupsOf(items).map(({ key, items: group }) => {
      const { section, rows } = this.group(key);
      place(rows, group.map((item) => this.viewOf(item, lookOf(item)).node));
      return section;
    });
    place(this.box, sections);
    // A line that moves loses the focus, and one that is drawn anew is another element.
    if (focusedId && !focused.matches(":focus")) this.link(focusedId)?.focus({ preventScroll: true });
  }

  group(key) {
    if (!this.groups.has(key)) {
      const rows = el("ul", {});
      const heading = el("h2", { id: `group-${key}` }, nameOf(key));
      rows.setAttribute("aria-labelledby", heading.id);
      this.groups.set(key, { rows, section: el("section", {}, heading, rows) });
    }
    return this.groups.get(key);
  }

  viewOf(item, look) {
    if (!this.views.has(item.id)) this.views.set(item.id, new RowView(this.acts));
    const view = this.views.get(item.id);
    view.update(item, look);
    return view;
  }

  view(id) {
    return this.views.get(id);
  }

  link(id) {
    return this.views.get(id)?.node.querySelector("a");
  }

  /** The ids in the order in which they stand. */
  ids() {
    return [...this.box.querySelectorAll("li")].map((row) => row.dataset.id);
  }
}

const month = new Intl.DateTimeFormat(locale, { year: "numeric", month: "long" });
const NAMES = { pinned: t("rail.pinned"), today: t("today"), yesterday: t("yesterday"), this_week: t("this_week") };

const nameOf = (key) => NAMES[key] ?? month.format(new Date(`${key}-15`));
