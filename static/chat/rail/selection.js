// Which chats are picked, while several are. Pure; knows no elements.

export class Selection {
  constructor(changed = () => null) {
    Object.assign(this, { ids: new Set(), isOn: false, anchor: null, changed });
  }

  begin(id = null) {
    this.isOn = true;
    if (id) this.toggle(id);
    else this.changed();
  }

  end() {
    Object.assign(this, { isOn: false, anchor: null });
    this.ids.clear();
    this.changed();
  }

  toggle(id) {
    if (!this.ids.delete(id)) this.ids.add(id);
    this.anchor = id;
    this.changed();
  }

  /** Picks everything between the last one that was picked and `id`, in the order of `all`. */
  extend(id, all) {
    const from = Math.max(0, all.indexOf(this.anchor ?? id));
    const to = all.indexOf(id);
    for (const other of all.slice(Math.min(from, to), Math.max(from, to) + 1)) this.ids.add(other);
    this.changed();
  }

  all(ids) {
    this.ids = new Set(ids);
    this.changed();
  }

  /** What is no longer in the list is picked no longer. */
  keep(ids) {
    const known = new Set(ids);
    for (const id of this.ids) if (!known.has(id)) this.ids.delete(id);
  }
}
