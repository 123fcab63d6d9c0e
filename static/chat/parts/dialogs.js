// Questions that must be answered before something cannot be undone.

import { byId } from "./dom.js";
import { t } from "./i18n.js";

/** True when the person agrees to `question`. Escape and the backdrop mean no. `no` and `yes` name the buttons. */
export function confirmed(question, { yes = t("delete"), no = t("keep") } = {}) {
  const dialog = byId("confirm");
  byId("confirm-text").textContent = question;
  byId("confirm-yes").textContent = yes;
  byId("confirm-no").textContent = no;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}
