// Who moves the view: it follows the growing answer until the reader scrolls up, and never fights.
// A window of another size breaks lines elsewhere: whoever was at the end stays there.

import { byId } from "./dom.js";

const NEAR_END_PX = 24;

export class Scroll {
  constructor() {
    this.box = byId("scroller");
    this.button = byId("to-end");
    this.isPinned = true;
    this.lastTop = 0;
    this.button.addEventListener("click", () => this.toEnd());
    this.box.addEventListener("scroll", () => this.moved(), { passive: true });
    new ResizeObserver(() => this.follow()).observe(this.box);
    this.box.addEventListener("wheel", (event) => event.deltaY < 0 && this.unpin(), { passive: true });
  }

  /** Any way up lets go of the end; coming back to it takes hold again. */
  moved() {
    const { scrollTop } = this.box;
    if (scrollTop < this.lastTop - 1 && !this.isAtEnd()) this.unpin();
    else if (this.isAtEnd()) this.isPinned = true;
    this.lastTop = scrollTop;
    this.button.hidden = this.isPinned || this.isAtEnd();
  }

  unpin() {
    if (this.box.scrollHeight <= this.box.clientHeight) return;
    this.isPinned = false;
    this.button.hidden = this.isAtEnd();
  }

  isAtEnd() {
    return this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < NEAR_END_PX;
  }

  /** After the content grew. */
  follow() {
    if (this.isPinned) this.toEnd();
    else this.button.hidden = this.isAtEnd();
  }

  toEnd() {
    this.isPinned = true;
    this.box.scrollTop = this.box.scrollHeight;
    this.lastTop = this.box.scrollTop;
    this.button.hidden = true;
  }
}
