// Puts the field together with what stands around it: templates, sheets, the corner, temporary chats, quotas.

import { changeConversation } from "../line/api.js";
import { byId } from "../parts/dom.js";
import { ChatSheet } from "../sheets/chat.js";
import { openSettings } from "../sheets/settings.js";
import { listenForHelp, openShortcuts } from "../sheets/shortcuts.js";
import { TemplatesSheet } from "../sheets/templates.js";
import { askVariables } from "../sheets/variables.js";
import { closeSheet } from "../parts/sheet.js";
import { Drafts } from "../state/drafts.js";
import { Templates } from "../state/templates.js";
import { Composer } from "./composer.js";
import { aboutChat, Corner } from "./corner.js";
import { Palette } from "./palette.js";
import { QuotaBanner } from "./quota.js";
import { Temporary } from "./temporary.js";
import { variablesOf } from "./variables.js";

export class Desk {
  constructor(store, asker, outbox) {
    const { user } = store.boot;
    this.store = store;
    this.composer = new Composer(store, asker, new Drafts(user.name));
    this.templates = new Templates(user.name);
    this.temporary = new Temporary(store, outbox);
    this.setUpTemplates(user);
    const chat = new ChatSheet(store, keepSetup, () => aboutChat(store));
    new Corner(store, { openChat: () => chat.open(), setTemporary: (isTemporary) => this.setTemporary(isTemporary) });
    new QuotaBanner(store);
    byId("settings").addEventListener("click", () => openSettings(store.boot, () => this.composer.setKeys()));
    listenForHelp();
  }

  /** What is begun already goes along, and out of the stored drafts. */
  setTemporary(isTemporary) {
    this.temporary.set(isTemporary);
    this.composer.changed();
    this.composer.field.focus();
  }

  setUpTemplates(user) {
    const sheet = new TemplatesSheet(this.templates, (template) => {
      closeSheet();
      this.take(template, this.composer.field.value);
    }, user);
    const manage = (isQuery) => {
      if (isQuery) this.composer.fill("");
      sheet.open();
    };
    const palette = new Palette(this.templates, (template, draft) => this.take(template, draft), manage);
    this.composer.offerKeys((event) => palette.key(event));
    this.templates.on(() => this.store.announce("thread")); // an empty chat offers them
    this.templates.refresh().catch(() => null); // without a line what is kept will do
  }

  /** Puts `template` into the field; its variables are asked for first. A `draft` that stands there is kept. */
  take(template, draft = "") {
    this.templates.used(template);
    const { body } = template;
    if (variablesOf(body).length) askVariables(template, draft, (text) => this.composer.start(text));
    else this.composer.start(draft.trim() ? `${body}\n\n${draft}` : body);
  }

  /** What the empty chat offers. */
  get offers() {
    return { templates: this.templates, start: (text) => this.composer.start(text), take: (template) => this.take(template), openHelp: openShortcuts };
  }
}

async function keepSetup(conversation, setup) {
  if (!conversation.id) return; // its first message carries it
  conversation.numChanges += 1;
  await changeConversation(conversation.id, setup);
}
