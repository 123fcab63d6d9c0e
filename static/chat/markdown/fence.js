// A fenced block of code that is still open: its lines are appended as text, never parsed again.

import { codeBlock } from "./code.js";

export class OpenFence {
  /** The open fence that `token` began at `start` of `text`, or null when it is none or is closed already. */
  static from(token, text, start) {
    if (token.type !== "fence" || text[start] !== token.markup[0]) return null;
    const fence = new OpenFence(token, text.indexOf("\n", start) + 1);
    return fence.findEnd(text) === null ? fence : null;
  }

  constructor(token, contentStart) {
    this.markup = token.markup;
    this.shown = this.line = contentStart; // characters shown; start of the line that is being read
    this.node = codeBlock(token.info.trim().split(/\s/)[0], "");
    const mark = `\\${this.markup[0]}`;
    this.closing = new RegExp(`^ {0,3}${mark}{${this.markup.length},}[ \\t\\r]*$`);
    this.maybeClosing = new RegExp(`^ {0,3}${mark}*[ \\t\\r]*$`);
  }

  /** `shown` is the block as it stands in the page. */
  bind(shown) {
    this.code = shown.querySelector("code");
    this.code.replaceChildren();
  }

  /** Shows what was added to `text`. Returns where the closing line ends, or null while the fence is open. */
  feed(text, isFinal) {
    const end = this.findEnd(text);
    if (end !== null) {
      this.show(text, this.line);
      this.code.normalize();
      return end;
    }
    const lastLine = text.slice(this.line);
    const isEnd = isFinal && this.closing.test(lastLine);
    // A half line that may become the closing one waits until it is clear.
    const isWaiting = !isFinal && this.maybeClosing.test(lastLine);
    this.show(text, isEnd || isWaiting ? this.line : text.length);
    if (isFinal) this.code.normalize();
    return isEnd ? text.length : null;
  }

  findEnd(text) {
    for (let end = text.indexOf("\n", this.line); end >= 0; end = text.indexOf("\n", this.line)) {
      if (this.closing.test(text.slice(this.line, end))) return end + 1;
      this.line = end + 1;
    }
    return null;
  }

  show(text, end) {
    if (end <= this.shown) return;
    // A text node of its own: adding to one long node would copy it every time.
    this.code.append(text.slice(this.shown, end).replaceAll("\r", ""));
    this.shown = end;
  }
}
