// Reading a draft early, for people who chose so: what of it stands firm goes to the server after a pause.

import { preferences } from "../state/preferences.js";
import { settled } from "./count.js";

const PAUSE_MS = 500;
const FEWEST_MORE_CHARS = 12;
// A frame of this kind holds at most 64 KiB; a longer draft is read when it is sent.
const LONGEST = 12_000;

export class EarlyReader {
  /** `say(frame)` speaks to the server. */
  constructor(store, say) {
    Object.assign(this, { store, say, told: "" });
  }

  draft(text) {
    clearTimeout(this.timer);
    if (!text) this.drop();
    else if (preferences().warmsTyping) this.timer = setTimeout(() => this.tell(text), PAUSE_MS);
  }

  /** The draft is gone: what of it was still to be read gives way to the history, unless it was sent. */
  drop() {
    const { id, pending } = this.store.conversation;
    if (this.told && id && pending.length === 0) this.say({ type: "warm", conversation: id });
    this.told = "";
  }

  tell(text) {
    const { id, is_temporary } = this.store.conversation;
    const firm = settled(text);
    const isNews = !firm.startsWith(this.told) || firm.length >= this.told.length + FEWEST_MORE_CHARS;
    if (!id || is_temporary || !firm || firm.length > LONGEST || !isNews) return;
    this.told = firm;
    this.say({ type: "warm", conversation: id, draft: firm });
  }
}
