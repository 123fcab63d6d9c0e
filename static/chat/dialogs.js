// Questions that must be answered before something cannot be undone.

import { byId } from "./dom.js";
import { t } from "./i18n.js";

/** True when the person says so. Escape and the backdrop mean no. */
export function confirmDelete(title) {
  const dialog = byId("confirm");
  byId("confirm-text").textContent = t("delete.question", { title });
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "delete"), { once: true }));
}
