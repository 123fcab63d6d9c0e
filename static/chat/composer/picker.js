// Which model answers: its name, and where several are served the button at which another one is chosen.

import { changeConversation } from "../line/api.js";
import { el, icon } from "../parts/dom.js";
import { t } from "../parts/i18n.js";
import { openMenu } from "../parts/menu.js";
import { modelOf } from "../state/models.js";
import { prefer } from "../state/preferences.js";

export class ModelPicker {
  constructor(store) {
    this.store = store;
    this.name = el("span", { className: "model-name" });
    this.node = store.boot.models.length > 1 ? this.button() : this.name;
    for (const part of ["conversation", "thread", "setup"]) store.on(part, () => this.draw());
    this.draw();
  }

  button() {
    const props = { type: "button", className: "model-button", title: t("model.choose"), "aria-haspopup": "menu", "aria-expanded": "false" };
    return el("button", { ...props, onclick: () => this.open() }, this.name, icon("chevron"));
  }

  draw() {
    const { conversation } = this.store;
    const model = modelOf(this.store);
    this.name.replaceChildren(...(model ? [el("span", { className: "unseen" }, t("about.answers")), model.name] : []));
    // A first message is on its way: it says by which model the chat begins.
    this.node.disabled = !conversation.id && conversation.pending.length > 0;
  }

  open() {
    const shown = modelOf(this.store);
    const items = this.store.boot.models.map((model) => ({ label: model.name, isChosen: model === shown, act: () => this.choose(model.name) }));
    openMenu(this.node, t("model.choose"), items);
  }

  /** The next answer is this model's, and so are chats to come. */
  async choose(name) {
    const { store } = this;
    const { conversation } = store;
    const before = conversation.model;
    prefer({ model: name });
    this.show(conversation, name);
    if (!conversation.id) return; // its first message says it
    conversation.numChanges += 1;
    try {
      await changeConversation(conversation.id, { model: name });
    } catch {
      this.show(conversation, before);
      store.announce("notice", { code: "not_saved" });
    }
  }

  show(conversation, name) {
    conversation.model = name;
    this.store.announce("setup");
    this.store.announce("thread"); // an empty chat says who answers
  }
}
