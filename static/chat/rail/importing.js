// The sheet for taking in chats from a file, picked or dropped: our own export, or ChatGPT's `conversations.json`.

import { importFile } from "../line/chats.js";
import { el, icon } from "../parts/dom.js";
import { errorText, formatNumber, t } from "../parts/i18n.js";
import { openSheet } from "../parts/sheet.js";

/** `limit`: the largest file in bytes; `done()` is called when chats came in. */
export function openImport(limit, done) {
  const outcome = el("div", { className: "import-outcome", role: "status" });
  const field = el("input", { type: "file", accept: ".json,application/json", className: "unseen", id: "import-file" });
  const zone = el("label", { className: "drop-zone", for: field.id }, icon("upload"), el("span", {}, t("import.drop")), el("span", { className: "button" }, t("import.choose")));
  const take = (file) => file && taken(file, { limit, outcome, zone, done });
  field.addEventListener("change", () => {
    take(field.files[0]);
    field.value = ""; // the same file may be tried again
  });
  for (const kind of ["dragover", "dragenter"]) zone.addEventListener(kind, (event) => hover(event, zone, true));
  zone.addEventListener("dragleave", (event) => hover(event, zone, false));
  zone.addEventListener("drop", (event) => {
    hover(event, zone, false);
    take(event.dataTransfer.files[0]);
  });
  openSheet(t("import.title"), [el("p", {}, t("import.what")), field, zone, outcome]);
  field.focus();
}

function hover(event, zone, isOver) {
  event.preventDefault();
  zone.classList.toggle("over", isOver);
}

async function taken(file, { limit, outcome, zone, done }) {
  const say = (className, ...words) => outcome.replaceChildren(el("div", { className }, ...words.filter(Boolean).map((word) => el("p", {}, word))));
  if (file.size > limit) {
    say("note", t("import.too_large", { n: formatNumber(limit / 1_000_000) }));
    return;
  }
  zone.inert = true;
  say("hint", t("import.reading", { name: file.name }));
  try {
    const { conversations, num_messages } = await importFile(file);
    const num = conversations.length;
    say("import-done", t("import.done", { count: num, n: formatNumber(num), messages: formatNumber(num_messages) }));
    done();
  } catch (error) {
    const detail = error.status === 400 ? error.message : "";
    say("note", errorText(error.code, {}, "error.unreadable_file"), detail && t("import.detail", { detail }));
  } finally {
    zone.inert = false;
  }
}
