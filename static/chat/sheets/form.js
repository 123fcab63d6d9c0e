// Rows of forms in a sheet: a label, a control, a plain hint, and room for what is wrong.

import { el } from "../parts/dom.js";

let numRows = 0;

/** A control with its words. `say(problem)` shows what is wrong with it; an empty text takes that away. */
export class Row {
  constructor(label, hint, control) {
    numRows += 1;
    const id = `row-${numRows}`;
    this.control = control;
    this.problem = el("p", { id: `${id}-problem`, className: "problem", role: "alert", hidden: true });
    this.hint = el("p", { id: `${id}-hint`, className: "row-hint" }, hint);
    control.id = id;
    control.setAttribute("aria-describedby", `${id}-hint ${id}-problem`);
    this.node = el("div", { className: control.type === "checkbox" ? "form-row check" : "form-row" }, el("label", { for: id }, label), control, this.hint, this.problem);
  }

  say(problem) {
    this.problem.textContent = problem;
    this.problem.hidden = !problem;
    this.control.setAttribute("aria-invalid", String(Boolean(problem)));
  }
}

/** A few choices of which one holds, in a line. `options` are [value, words]; `onchange` gets the value. */
export function choice(name, label, options, value, onchange) {
  const radios = options.map(([own, words]) =>
    el(
      "label",
      {},
      el("input", { type: "radio", name, value: own, checked: own === value, onchange: () => onchange(own) }),
      el("span", {}, words),
    ),
  );
  return el("fieldset", { className: "choice" }, el("legend", {}, label), el("div", { className: "choice-line" }, ...radios));
}

/** A part of a sheet under a heading of its own. */
export function section(title, ...content) {
  return el("section", { className: "sheet-section" }, el("h3", {}, title), ...content);
}
