// What can be done with one chat, in the menu of its line and in the corner of the shown one.

import { confirmed } from "../parts/dialogs.js";
import { t } from "../parts/i18n.js";
import { openMenu } from "../parts/menu.js";
import { exportOne } from "./exporting.js";
import { titleOf } from "./row.js";
import { openSharing } from "./sharing.js";
import { openTags } from "./tags.js";

export class ChatMenu {
  /** `rename(id)` puts a field in the title's place, which `hasLine(id)` says is to be seen. */
  constructor({ store, list, acts, undo, rename, hasLine }) {
    Object.assign(this, { store, list, acts, undo, rename, hasLine });
  }

  open(item, button) {
    const rename = { icon: "pen", label: t("rail.rename"), act: () => this.rename(item.id) };
    openMenu(button, titleOf(item), [
      ...(this.hasLine(item.id) ? [rename] : []),
      { icon: "pin", label: t(item.is_pinned ? "rail.unpin" : "rail.pin"), act: () => this.acts.change(item, { is_pinned: !item.is_pinned }) },
      { icon: "tag", label: t("rail.tags"), act: () => openTags(item, this.list, this.acts) },
      ...this.leaving(item),
      "line",
      { icon: "archive", label: t(item.is_archived ? "rail.unarchive" : "rail.archive"), act: () => this.setArchived(item) },
      { icon: "trash", label: t("delete"), act: () => this.remove(item), isDanger: true },
    ]);
  }

  /** What leads out: a link and files. */
  leaving(item) {
    const share = { icon: "share", label: t("share.begin"), act: () => openSharing(item) };
    return [
      ...(this.store.boot.can_share ? [share] : []),
      { icon: "download", label: t("export.markdown"), act: () => exportOne(item.id, "markdown") },
      { icon: "download", label: t("export.json"), act: () => exportOne(item.id, "json") },
    ];
  }

  async setArchived(item) {
    const is_archived = !item.is_archived;
    if (!(await this.acts.change(item, { is_archived }))) return;
    const words = t(is_archived ? "rail.archived_one" : "rail.unarchived_one", { title: titleOf(item) });
    this.undo.offer(words, () => this.acts.change({ ...item, is_archived }, { is_archived: item.is_archived }));
  }

  async remove(item) {
    if (await confirmed(t("delete.question", { title: titleOf(item) }))) await this.acts.remove([item]);
  }
}
