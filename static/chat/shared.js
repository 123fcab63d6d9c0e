// A shared snapshot: the server sends the texts as plain text; here the answers get the looks they had in the chat.

import { MarkdownView } from "./markdown/view.js";
import { copyCode } from "./parts/copy.js";

for (const node of document.querySelectorAll("[data-markdown]")) {
  const text = node.textContent;
  new MarkdownView(node).update(text, true);
  node.removeAttribute("data-markdown");
}
document.getElementById("transcript").addEventListener("click", copyCode);
