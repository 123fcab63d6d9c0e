// The shown branch as elements. Views are kept by message id, so that a change touches its own message only.

import { copy, copyCode } from "../parts/copy.js";
import { byId, el } from "../parts/dom.js";
import { t } from "../parts/i18n.js";
import { modelOf } from "../state/models.js";
import { isLive, pathTo, topOf } from "../state/tree.js";
import { AnswerView } from "./answer.js";
import { EarlierMessages } from "./earlier.js";
import { emptyState } from "./empty.js";
import { QuestionView } from "./question.js";
import { Scroll } from "./scroll.js";
import { copySelection } from "./selection.js";

export class Transcript {
  constructor(store, live, actions) {
    Object.assign(this, { store, live, views: new Map() });
    this.log = byId("transcript");
    this.scroll = new Scroll();
    this.earlier = new EarlierMessages(this.scroll.box, actions.loadEarlier);
    this.actions = { ...actions, copy, takeBack: (id) => this.takeBack(id), grown: () => this.scroll.follow() };
    this.log.addEventListener("click", copyCode);
    this.log.addEventListener("copy", copySelection);
    store.on("conversation", () => this.replaceAll());
    store.on("thread", (detail) => this.render(detail));
    store.on("answer", (message) => this.renderOne(message));
  }

  replaceAll() {
    this.isNews = false;
    this.views.clear();
    this.log.replaceChildren();
    this.draw();
    this.scroll.toEnd();
  }

  /** `detail` says what changed where more than the end may have: { own, isEarlier, variant, instead }. */
  render({ own, isEarlier, variant, instead } = {}) {
    this.isNews ||= Boolean(own);
    const held = isEarlier ? this.log.querySelector("article") : this.views.get(instead)?.node;
    const hadFocus = held?.contains(document.activeElement) ? document.activeElement.dataset.act : null;
    if (held) this.scroll.hold(held, () => this.draw(isEarlier), () => this.views.get(variant)?.node ?? held);
    else this.draw();
    if (hadFocus && variant) this.focus(this.views.get(variant)?.node, hadFocus);
    if (own) this.scroll.toEnd();
    else this.scroll.follow();
  }

  /** The same button of another variant, or where that is the last one on its side, any. */
  focus(node, act) {
    (node?.querySelector(`[data-act="${act}"]:not(:disabled)`) ?? node?.querySelector("[data-act]:not(:disabled)"))?.focus();
  }

  draw(isEarlier = false) {
    const { messages, leaf, state } = this.store.conversation;
    const nodes = shownOf(this.store.conversation).map((message) => this.viewOf(message).node);
    if (nodes.length === 0) nodes.push(this.standIn(state));
    if (topOf(messages, leaf)) nodes.unshift(this.earlier.watched());
    // What was said before is no news to be read out, neither when a chat is opened nor when it comes in above.
    this.log.setAttribute("aria-live", isEarlier || !this.isNews ? "off" : "polite");
    this.place(nodes);
    this.markBusy();
  }

  /** Puts `nodes` in order and leaves those alone that stand right already. */
  place(nodes) {
    const kept = new Set(nodes);
    for (const child of [...this.log.children]) if (!kept.has(child)) child.remove();
    let at = this.log.firstChild;
    for (const node of nodes) {
      if (node === at) at = at.nextSibling;
      else this.log.insertBefore(node, at);
    }
  }

  viewOf(message) {
    const id = message.id ?? message.client_message_id;
    if (!this.views.has(id)) {
      const View = message.role === "assistant" ? AnswerView : QuestionView;
      this.views.set(id, new View(message, this.actions));
    }
    const view = this.views.get(id);
    view.update(message, this.live.get(message.generation?.id));
    return view;
  }

  renderOne(message) {
    if (!this.views.has(message.id)) return;
    this.viewOf(message);
    this.markBusy();
    // A growing text says itself when it has been drawn; to look before would lay the page out for each piece.
    if (!isLive(message)) this.scroll.follow();
  }

  markBusy() {
    const { messages, leaf } = this.store.conversation;
    const last = messages.get(leaf);
    this.log.setAttribute("aria-busy", String(Boolean(last && isLive(last))));
  }

  /** A refused message goes back to where it was written. */
  takeBack(id) {
    const { text, edited } = this.actions.withdraw(id);
    if (edited) this.views.get(edited)?.edit(text);
    else this.actions.start(text);
  }

  standIn(state) {
    if (state === "loading") return el("div", { className: "skeletons thread", "aria-hidden": "true" }, ...[40, 92, 84, 70].map((w) => el("i", { className: `w${w}` })));
    if (state === "missing") return trouble("missing", el("a", { className: "button", href: "/", "data-conversation": "" }, t("new_chat")));
    if (state === "unreachable") return trouble("unreachable", el("button", { type: "button", onclick: this.actions.reload }, t("try_again")));
    return emptyState(this.store.boot, modelOf(this.store), this.actions.offers);
  }
}

/** The shown branch and what is on its way behind it. An edit on its way already stands in the place of what it replaces. */
function shownOf({ messages, leaf, pending }) {
  const edit = pending.find((entry) => entry.edited);
  return edit ? [...pathTo(messages, edit.parent), edit] : [...pathTo(messages, leaf), ...pending];
}

const trouble = (name, button) => el("div", { className: "note", role: "alert" }, el("span", {}, t(`error.${name}`)), button);
