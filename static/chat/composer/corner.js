// The corner at the top right: which model answers, how full its window is, and the buttons about the shown chat.

import { byId, el, iconButton } from "../parts/dom.js";
import { formatNumber, t } from "../parts/i18n.js";
import { modelOf } from "../state/models.js";
import { Meter, windowOf, windowWords } from "./meter.js";
import { ModelPicker } from "./picker.js";

export class Corner {
  /** `openChat()` opens “This chat”, `setTemporary(isTemporary)` switches a new chat. */
  constructor(store, { openChat, setTemporary }) {
    this.store = store;
    this.switch = iconButton("temporary", t("temporary"), () => setTemporary(!store.conversation.is_temporary), { "aria-label": t("temporary"), title: t("temporary.what") });
    this.setup = iconButton("sliders", t("setup.title"), openChat);
    byId("corner").prepend(new ModelPicker(store).node, new Meter(store, openChat).node, this.switch, this.setup);
    for (const part of ["conversation", "thread", "setup"]) store.on(part, () => this.draw());
  }

  draw() {
    const { conversation } = this.store;
    this.switch.hidden = Boolean(conversation.id) || conversation.pending.length > 0;
    this.switch.setAttribute("aria-pressed", String(conversation.is_temporary));
    const isSetUp = Boolean(conversation.system_prompt) || Object.keys(conversation.parameters).length > 0;
    this.setup.classList.toggle("marked", isSetUp);
    this.setup.title = isSetUp ? `${t("setup.title")} (${t("setup.changed")})` : t("setup.title");
    this.setup.hidden = conversation.state !== "ready";
  }
}

/** What the sheet about the chat says at its top: the model, and how full its window is. */
export function aboutChat(store) {
  const model = modelOf(store);
  if (!model) return [];
  const filled = windowOf(store.conversation, model.max_context);
  const size = model.max_context ? t("about.window", { n: formatNumber(model.max_context) }) : "";
  return [el("p", { className: "about-model" }, el("b", {}, model.name), el("span", {}, filled ? windowWords(filled) : size))];
}
