// “This chat”: what the model is told first and how it is sampled. What is typed is kept by itself, once it is valid.

import { closeSheet, openSheet } from "../parts/sheet.js";
import { el } from "../parts/dom.js";
import { formatNumber, t } from "../parts/i18n.js";
import { lengthOf } from "../composer/count.js";
import { Row } from "./form.js";
import { MAX_PROMPT_CHARS, PARAMETERS, parsed, shownAs } from "./parameters.js";

const SAVE_AFTER_MS = 600;
const AT_ONCE = ["temperature", "max_tokens"];

export class ChatSheet {
  /** `keep(conversation, setup)` stores what was set up; it raises where that fails. `about()` gives nodes for the top. */
  constructor(store, keep, about) {
    Object.assign(this, { store, keep, about, isOpen: false });
    store.on("conversation", () => this.isOpen && closeSheet());
  }

  open() {
    const { system_prompt, parameters } = (this.conversation = this.store.conversation);
    this.prompt = new Row(t("setup.prompt"), t("setup.prompt.hint"), el("textarea", { rows: 4, value: system_prompt }));
    this.rows = new Map(PARAMETERS.map((parameter) => [parameter, rowOf(parameter, parameters[parameter.name])]));
    this.state = el("p", { className: "saved", role: "status" });
    openSheet(t("setup.title"), [this.form()], () => this.closed());
    this.isOpen = true;
  }

  form() {
    const nodesOf = (isWanted) => PARAMETERS.filter((one) => isWanted(AT_ONCE.includes(one.name))).map((one) => this.rows.get(one).node);
    const isSet = PARAMETERS.some(({ name }) => !AT_ONCE.includes(name) && this.conversation.parameters[name] !== undefined);
    const more = el("details", { className: "more-rows", open: isSet }, el("summary", {}, t("setup.more")), ...nodesOf((isAtOnce) => !isAtOnce));
    const reset = el("button", { type: "button", onclick: () => this.reset() }, t("setup.reset"));
    return el(
      "form",
      { className: "sheet-form", novalidate: true, onsubmit: (event) => event.preventDefault(), oninput: () => this.saveSoon(), onchange: () => this.save() },
      ...this.about(),
      this.prompt.node,
      ...nodesOf((isAtOnce) => isAtOnce),
      more,
      el("div", { className: "sheet-end" }, reset, this.state),
    );
  }

  reset() {
    for (const { control } of [this.prompt, ...this.rows.values()]) control.value = "";
    this.save();
  }

  saveSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.save(), SAVE_AFTER_MS);
  }

  async save() {
    clearTimeout(this.timer);
    const setup = this.read();
    if (!setup || isSame(setup, this.conversation)) return;
    const { conversation } = this;
    if (!conversation.id && conversation.pending.length) {
      this.saveSoon(); // its first message is on its way, with what was set up before
      return;
    }
    Object.assign(conversation, setup);
    this.store.announce("setup");
    try {
      await this.keep(conversation, setup);
      this.state.textContent = t(conversation.id ? "setup.saved" : "setup.kept");
    } catch {
      this.state.textContent = t("error.not_saved");
    }
  }

  /** What the form says, or null when something in it is wrong. */
  read() {
    const excess = lengthOf(this.prompt.control.value) - MAX_PROMPT_CHARS;
    this.prompt.say(excess > 0 ? t("bound.too_long", { n: formatNumber(excess) }) : "");
    const parameters = {};
    let isRight = excess <= 0;
    for (const [parameter, row] of this.rows) {
      const { value, problem, values } = parsed(parameter, row.control.value);
      row.say(problem ? t(problem, values) : "");
      if (problem) isRight = false;
      else if (value !== undefined) parameters[parameter.name] = value;
    }
    return isRight ? { system_prompt: this.prompt.control.value, parameters } : null;
  }

  closed() {
    this.isOpen = false;
    this.save();
  }
}

const isSame = (setup, { system_prompt, parameters }) =>
  setup.system_prompt === system_prompt && JSON.stringify(Object.entries(setup.parameters).sort()) === JSON.stringify(Object.entries(parameters).sort());

function rowOf(parameter, value) {
  const { name } = parameter;
  const shown = { value: shownAs(parameter, value), placeholder: t("setup.models_choice"), autocomplete: "off", spellcheck: false };
  const control = name === "stop" ? el("textarea", { rows: 2, ...shown }) : el("input", { type: "text", inputMode: parameter.isWhole ? "numeric" : "decimal", ...shown });
  return new Row(t(`param.${name}`), t(`param.${name}.hint`), control);
}
