// Which tabs of this browser live: each holds a lock by its name until it is closed. A reload keeps the name.
// Where the browser has no locks (a site without TLS that is not this machine) a tab knows nothing of the others.

import { newId } from "../parts/ids.js";

const KEY = "rill.tab";
const LOCK = "rill.tab.";
const CLAIM_MS = 500;
// A tab that is being loaded again lets go of its lock for as long.
const GRACE_MS = 3_000;

export class Tabs {
  constructor({ locks = navigator.locks, session = sessionStorage, grace = GRACE_MS } = {}) {
    Object.assign(this, { locks, session, grace });
    this.name = session.getItem(KEY) ?? newId();
    this.ready = this.claim();
  }

  get knowsOthers() {
    return Boolean(this.locks);
  }

  /** Takes the name for this tab; a copy of a living tab has copied its name, too, and takes another one. */
  async claim() {
    if (this.knowsOthers && !(await this.hold())) {
      this.name = newId();
      await this.hold();
    }
    this.session.setItem(KEY, this.name);
  }

  hold() {
    const options = { signal: AbortSignal.timeout(CLAIM_MS) };
    return new Promise((resolve) => {
      const held = () => {
        resolve(true);
        return new Promise(() => {});
      };
      this.locks.request(LOCK + this.name, options, held).catch(() => resolve(false));
    });
  }

  /** Runs `act` in one tab at a time when the tab `name` has been closed. */
  async whenGone(name, act) {
    for (let isDone = false; !isDone; ) {
      await this.locks.request(LOCK + name, () => {});
      await new Promise((resolve) => setTimeout(resolve, this.grace));
      isDone = await this.locks.request(LOCK + name, { ifAvailable: true }, (lock) => this.acted(lock, act));
    }
  }

  acted(lock, act) {
    if (lock) act();
    return Boolean(lock);
  }
}
