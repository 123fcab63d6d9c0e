// A fenced block of code that is still open: its lines are appended to one text node, never parsed again.

import { codeBlock } from "./build.js";

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
    this.code = shown.querySelector("code").firstChild;
    this.code.data = "";
  }

  /** Shows what was added to `text`. Returns where the closing line ends, or null while the fence is open. */
  feed(text, isFinal) {
    const end = this.findEnd(text);
    if (end !== null) {
      this.show(text, this.line);
      return end;
    }
    const lastLine = text.slice(this.line);
    if (isFinal && this.closing.test(lastLine)) {
      this.show(text, this.line);
      return text.length;
    }
    // A half line that may become the closing one waits until it is clear.
    this.show(text, !isFinal && this.maybeClosing.test(lastLine) ? this.line : text.length);
    return null;
  }

  findEnd(text) {
    for (let end = text.indexOf("\n", this.line); end >= 0; end = text.indexOf("\n", this.line)) {
      if (this.closing.test(text.slice(this.line, end))) return end + 1;
      this.line = end + 1;
    }
    return null;
  }

  show(text, end) {
    if (end > this.shown) this.code.appendData(text.slice(this.shown, end));
    this.shown = Math.max(this.shown, end);
  }
}
