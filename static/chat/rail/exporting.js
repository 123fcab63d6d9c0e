// Chats as files: the browser takes them as downloads.

import { exportMany } from "../line/chats.js";
import { el } from "../parts/dom.js";

const ENDINGS = { json: "json", markdown: "md" };

export const exportOne = (id, form) => download(`/api/conversations/${id}/export?form=${form}`);
export const exportAll = (form) => download(`/api/conversations/export?form=${form}`);

/** The named ones as one file. Raises ApiError. */
export async function exportPicked(ids, form) {
  const address = URL.createObjectURL(await exportMany(ids, form));
  download(address, `conversations.${ENDINGS[form]}`);
  URL.revokeObjectURL(address);
}

/** The name is the server's where it gives one. */
function download(href, name = "") {
  const link = el("a", { href, download: name, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
}
