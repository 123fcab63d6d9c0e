// The shown branch as elements. Views are kept by message id, so that a change touches its own message only.

import { AnswerView } from "./answer.js";
import { byId, el, icon } from "./dom.js";
import { emptyState } from "./empty.js";
import { t } from "./i18n.js";
import { QuestionView } from "./question.js";
import { Scroll } from "./scroll.js";
import { isLive, pathTo, variantsOf } from "./thread.js";

export class Transcript {
  constructor(store, live, actions) {
    Object.assign(this, { store, live, views: new Map() });
    this.log = byId("transcript");
    this.scroll = new Scroll();
    this.actions = { ...actions, copy, grown: () => this.scroll.follow() };
    this.log.addEventListener("click", (event) => copyCode(event));
    store.on("conversation", () => this.replaceAll());
    store.on("thread", (detail) => this.render(detail));
    store.on("answer", (message) => this.renderOne(message));
  }

  replaceAll() {
    this.views.clear();
    this.log.replaceChildren();
    this.render();
    this.scroll.toEnd();
  }

  render(detail) {
    const { messages, leaf, pending, state } = this.store.conversation;
    const shown = [...pathTo(messages, leaf), ...pending];
    const nodes = shown.map((message) => this.viewOf(message).node);
    if (shown.length === 0) nodes.push(this.standIn(state));
    this.place(nodes);
    this.markBusy();
    if (detail?.own) this.scroll.toEnd();
    else this.scroll.follow();
  }

  /** Puts `nodes` in order and leaves those alone that stand right already. */
  place(nodes) {
    const kept = new Set(nodes);
    for (const child of [...this.log.children]) if (!kept.has(child)) child.remove();
    nodes.forEach((node, i) => {
      if (this.log.children[i] !== node) this.log.insertBefore(node, this.log.children[i] ?? null);
    });
  }

  viewOf(message) {
    const id = message.id ?? message.client_message_id;
    if (!this.views.has(id)) {
      const View = message.role === "assistant" ? AnswerView : QuestionView;
      this.views.set(id, new View(message, this.actions));
    }
    this.update(this.views.get(id), message);
    return this.views.get(id);
  }

  update(view, message) {
    if (message.role !== "assistant") view.update(message);
    else view.update(message, this.live.get(message.generation?.id), variantsOf(this.store.conversation.messages, message));
  }

  renderOne(message) {
    const view = this.views.get(message.id);
    if (!view) return;
    this.update(view, message);
    this.markBusy();
    this.scroll.follow();
  }

  markBusy() {
    const { messages, leaf } = this.store.conversation;
    const last = messages.get(leaf);
    this.log.setAttribute("aria-busy", String(Boolean(last && isLive(last))));
  }

  standIn(state) {
    if (state === "loading") return el("div", { className: "skeletons thread", "aria-hidden": "true" }, ...[40, 92, 84, 70].map((w) => el("i", { className: `w${w}` })));
    if (state === "missing") return trouble("missing", el("a", { className: "button", href: "/", "data-conversation": "" }, t("new_chat")));
    if (state === "unreachable") return trouble("unreachable", el("button", { type: "button", onclick: this.actions.reload }, t("try_again")));
    return emptyState(this.store.boot, this.actions.start);
  }
}

const trouble = (name, button) => el("div", { className: "note", role: "alert" }, el("span", {}, t(`error.${name}`)), button);

async function copy(text, button) {
  await navigator.clipboard.writeText(text);
  const before = [...button.childNodes];
  button.replaceChildren(icon("check"));
  setTimeout(() => button.replaceChildren(...before), 1200);
}

function copyCode(event) {
  const button = event.target.closest("[data-copy-code]");
  if (button) copy(button.closest(".code").querySelector("code").textContent, button);
}
