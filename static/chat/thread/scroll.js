// Who moves the view: it follows the growing answer until the reader scrolls up, and never fights.
// Whoever writes up there, in a question that is being changed, is not at the end.
// A window of another size breaks lines elsewhere, and what was skipped off screen gets its true height when it comes
// near: whoever was at the end stays there.

import { byId } from "../parts/dom.js";

const NEAR_END_PX = 24;

export class Scroll {
  constructor() {
    this.box = byId("scroller");
    this.button = byId("to-end");
    this.isPinned = true;
    this.lastTop = 0;
    this.button.addEventListener("click", () => this.toEnd());
    this.box.addEventListener("scroll", () => this.moved(), { passive: true });
    new ResizeObserver(() => this.follow()).observe(byId("transcript"));
    new ResizeObserver(() => this.resized()).observe(this.box);
    this.box.addEventListener("focusin", ({ target }) => target.form && this.unpin());
    this.box.addEventListener("focusout", () => this.isAtEnd() && this.pin());
    this.box.addEventListener("wheel", (event) => event.deltaY < 0 && this.unpin(), { passive: true });
  }

  /** Any way up lets go of the end; coming back to it takes hold again. */
  moved() {
    const { scrollTop } = this.box;
    if (scrollTop < this.lastTop - 1 && !this.isAtEnd()) this.unpin();
    else if (this.isAtEnd()) this.pin();
    this.lastTop = scrollTop;
    this.button.hidden = this.isPinned || this.isAtEnd();
  }

  /** While nobody holds the end, the browser keeps the place where heights above it turn out different. */
  unpin() {
    if (this.box.scrollHeight <= this.box.clientHeight) return;
    this.isPinned = false;
    this.box.classList.add("free");
    this.button.hidden = this.isAtEnd();
  }

  pin() {
    this.isPinned = true;
    this.box.classList.remove("free");
  }

  isAtEnd() {
    return this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < NEAR_END_PX;
  }

  /** After the content grew. */
  follow() {
    if (this.isPinned) this.toEnd();
    else this.button.hidden = this.isAtEnd();
  }

  /** After the window got another size, or the keyboard of a phone took half of it: what is being written stays in sight. */
  resized() {
    const form = this.box.querySelector("form:focus-within");
    if (!form) {
      this.follow();
      return;
    }
    this.unpin();
    form.scrollIntoView({ block: "nearest" });
  }

  toEnd() {
    this.pin();
    this.box.scrollTop = this.box.scrollHeight;
    this.lastTop = this.box.scrollTop;
    this.button.hidden = true;
  }

  /** Runs `change`, after which `nodeAfter` stands where `nodeBefore` stood. The browser would do it as well, but not at the top. */
  hold(nodeBefore, change, nodeAfter = () => nodeBefore) {
    const place = nodeBefore.getBoundingClientRect().top;
    this.box.classList.remove("free");
    change();
    this.box.scrollTop += nodeAfter().getBoundingClientRect().top - place;
    this.lastTop = this.box.scrollTop;
    if (this.isAtEnd()) this.pin();
    else this.unpin();
  }
}
