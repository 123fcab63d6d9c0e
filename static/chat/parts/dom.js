// Small makers of elements. Text always enters as text nodes; nothing here parses markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element. `props` sets properties; `class`, `data-*`, `aria-*`, `role` and `for` are set as attributes. */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && !name.includes("-")) node[name] = value;
    else node.setAttribute(name === "className" ? "class" : name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** An icon of the sprite that the page carries; decoration only, the control around it has the name. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#i-${name}`);
  svg.append(use);
  return svg;
}

/** A button that shows an icon and is called `label`; named twice over, it would be read out twice. */
export function iconButton(name, label, onclick, props = {}) {
  return el("button", { type: "button", className: "icon-button", title: label, onclick, ...props }, icon(name));
}

export const byId = (id) => document.getElementById(id);

const waiting = new Set();

/** Runs `job` once before the next paint, however often it is asked for until then. */
export function beforePaint(job) {
  if (waiting.size === 0) requestAnimationFrame(runWaiting);
  waiting.add(job);
}

function runWaiting() {
  const jobs = [...waiting];
  waiting.clear();
  for (const job of jobs) job();
}
