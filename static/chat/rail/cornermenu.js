// The corner's button about the shown chat as a whole: a link, files, archive, delete.

import { getConversation } from "../line/api.js";
import { byId, iconButton } from "../parts/dom.js";
import { t } from "../parts/i18n.js";

export class CornerMenu {
  constructor(store, list, menu) {
    Object.assign(this, { store, list, menu });
    this.button = iconButton("more", t("chat.more"), () => this.open(), { "aria-haspopup": "menu" });
    byId("corner").append(this.button);
    for (const part of ["conversation", "thread"]) store.on(part, () => this.render());
    this.render();
  }

  render() {
    const { id, is_temporary } = this.store.conversation;
    this.button.hidden = !id || Boolean(is_temporary);
  }

  /** The chat may stand on a page of the list that was never loaded. */
  async open() {
    const { id } = this.store.conversation;
    try {
      this.menu.open(this.list.find(id) ?? (await getConversation(id)), this.button);
    } catch {
      this.store.announce("notice", { code: "unreachable" });
    }
  }
}
