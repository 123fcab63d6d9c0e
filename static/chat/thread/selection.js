// Copying a selection: formulas in it leave as their TeX, not as loose signs.

import { el } from "../parts/dom.js";

/** For `copy` events: what is selected, with the source in the place of each formula. */
export function copySelection(event) {
  const selection = getSelection();
  if (selection.isCollapsed) return;
  const range = wholeFormulas(selection.getRangeAt(0).cloneRange());
  const copied = el("div", { className: "unseen" }, range.cloneContents());
  const formulas = copied.querySelectorAll("[data-source]");
  if (formulas.length === 0) return;
  for (const formula of formulas) formula.replaceChildren(formula.dataset.source);
  document.body.append(copied); // its line breaks are known only where it is shown
  event.clipboardData.setData("text/plain", copied.innerText);
  event.preventDefault();
  copied.remove();
}

function wholeFormulas(range) {
  const formulaAt = (node) => (node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement)?.closest("[data-source]");
  const first = formulaAt(range.startContainer);
  const last = formulaAt(range.endContainer);
  if (first) range.setStartBefore(first);
  if (last) range.setEndAfter(last);
  return range;
}
