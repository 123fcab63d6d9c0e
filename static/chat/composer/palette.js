// The list of templates above the field: opened by `/` at the beginning of a text, or by its button; the field keeps
// the focus, and the arrow keys go through the list.

import { byId, el, icon } from "../parts/dom.js";
import { catalogues, language, t } from "../parts/i18n.js";
import { hasTouchOnly, isComposing } from "../parts/keys.js";
import { say } from "../parts/say.js";
import { excerpt } from "./excerpt.js";
import { offered, ranked } from "./rank.js";

const MOST_SHOWN = 50;
// Chinese input methods write the key as one of these; the full-width ones begin no sentence.
const SLASH = /^[/／、]([^\n]{0,40})$/u;

export class Palette {
  /** `take(template, draft)` gets what was chosen; `draft` is what stood in the field, without the `/…`. */
  constructor(templates, take, manage) {
    Object.assign(this, { templates, take, manage, place: 0, isDismissed: false });
    this.field = byId("message");
    this.box = el("ul", { id: "palette", className: "palette", role: "listbox", "aria-label": t("templates.title"), hidden: true });
    this.button = byId("templates");
    byId("composer").prepend(this.box);
    this.field.setAttribute("aria-autocomplete", "list");
    this.field.setAttribute("aria-controls", "palette");
    this.field.addEventListener("input", (event) => event.isComposing || this.typed());
    this.field.addEventListener("compositionend", () => this.typed());
    this.field.addEventListener("blur", () => this.close());
    for (const node of [this.box, this.button]) node.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
    this.box.addEventListener("click", (event) => this.clicked(event));
    this.button.addEventListener("click", () => this.toggle());
    document.addEventListener("pointerdown", ({ target }) => this.box.contains(target) || this.button.contains(target) || this.close());
  }

  get isOpen() {
    return !this.box.hidden;
  }

  /** What was typed behind a `/` at the beginning, or null. */
  query() {
    return SLASH.exec(this.field.value)?.[1] ?? null;
  }

  typed() {
    const query = this.query();
    if (query === null || query === "") this.isDismissed = false;
    if (query === null || this.isDismissed) this.close();
    else this.show({ query, draft: "" });
  }

  toggle() {
    if (this.isOpen) {
      this.close();
      return;
    }
    if (!hasTouchOnly()) this.field.focus(); // on a phone the keyboard would cover half of the list
    this.show({ query: "", draft: this.query() === null ? this.field.value : "" });
  }

  show({ query, draft }) {
    const { items, history } = this.templates;
    const wanted = { query, draft, history, language };
    const found = ranked(offered(items, { ...wanted, languages: Object.keys(catalogues) }), wanted).slice(0, MOST_SHOWN);
    if (found.length === 0 && query) {
      this.close(); // a path, or anything else that begins so
      return;
    }
    Object.assign(this, { draft, choices: [...found, null], place: 0 });
    this.box.replaceChildren(...this.choices.map((template, i) => (template ? entry(template, i) : manageEntry(i))));
    this.box.hidden = false;
    this.button.setAttribute("aria-expanded", "true");
    this.mark();
    say(t("templates.found", { count: found.length, n: found.length }));
  }

  close() {
    if (!this.isOpen) return;
    this.box.hidden = true;
    this.box.replaceChildren();
    this.button.setAttribute("aria-expanded", "false");
    this.field.removeAttribute("aria-activedescendant");
  }

  mark() {
    [...this.box.children].forEach((option, i) => option.setAttribute("aria-selected", String(i === this.place)));
    const option = this.box.children[this.place];
    this.field.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  }

  /** True when the key was for the list. */
  key(event) {
    if (!this.isOpen || isComposing(event)) return false;
    const { length } = this.choices;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      this.place = (this.place + (event.key === "ArrowDown" ? 1 : length - 1)) % length;
      this.mark();
    } else if (event.key === "Escape") {
      this.isDismissed = this.query() !== null;
      this.close();
    } else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey) this.choose(this.place);
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  clicked(event) {
    const option = event.target.closest("[role=option]");
    if (option) this.choose([...this.box.children].indexOf(option));
  }

  choose(place) {
    const { draft } = this;
    const template = this.choices[place];
    const isQuery = this.query() !== null;
    this.close();
    if (template) this.take(template, draft);
    else this.manage(isQuery);
  }
}

const option = (i, ...content) => el("li", { id: `palette-${i}`, role: "option", "aria-selected": "false" }, ...content);
const entry = ({ title, body }, i) => option(i, el("b", {}, title), excerpt(body));
const manageEntry = (i) => option(i, icon("sliders"), el("span", {}, t("templates.manage")));
