// Shows a growing Markdown text. Finished blocks are never touched again, the lines of an open fence are only
// appended, and the last block is parsed anew: the work stays linear in the text. Stored texts take the same path.

import { blocksOf, parse } from "./parser.js";
import { build } from "./build.js";
import { closeHalf } from "./half.js";
import { morphChildren } from "./morph.js";
import { OpenFence } from "./fence.js";

export class MarkdownView {
  constructor(root) {
    this.root = root;
    this.reset();
  }

  reset() {
    this.text = "";
    this.done = 0; // characters that belong to finished blocks
    this.fixed = 0; // children of root that are finished
    this.checked = 0; // up to which line end finished blocks were looked for
    this.fence = null;
    this.root.replaceChildren();
  }

  /** Shows `text`, which as a rule continues the text shown before. */
  update(text, isFinal) {
    if (!text.startsWith(this.text)) this.reset();
    this.text = text;
    do {
      if (this.fence && !this.feedFence(isFinal)) return;
      this.finishBlocks(isFinal);
    } while (this.fence);
    const rest = text.slice(this.done);
    morphChildren(this.root, build(parse(isFinal ? rest : closeHalf(rest))), this.fixed);
  }

  /** True when the fence was closed; what follows it is ordinary text again. */
  feedFence(isFinal) {
    const end = this.fence.feed(this.text, isFinal);
    if (end === null) return false;
    this.done = this.checked = end;
    this.fixed += 1;
    this.fence = null;
    return true;
  }

  /** Fixes every block that another one follows. Only whole lines count: a half line may still become anything. */
  finishBlocks(isFinal) {
    const lineEnd = this.text.lastIndexOf("\n") + 1;
    if (isFinal || lineEnd <= this.checked) return;
    this.checked = lineEnd;
    const source = this.text.slice(this.done, lineEnd);
    const blocks = blocksOf(parse(source));
    if (blocks.length === 0) return;
    const nodes = build(blocks.flatMap((block) => block.tokens));
    const last = blocks.at(-1);
    const start = this.done + offsetOfLine(source, last.line);
    const fence = OpenFence.from(last.tokens[0], this.text, start);
    if (blocks.length > 1) {
      morphChildren(this.root, nodes.slice(0, -1), this.fixed, true);
      this.fixed += blocks.length - 1;
      this.done = start;
    }
    if (!fence) return;
    morphChildren(this.root, [fence.node], this.fixed);
    fence.bind(this.root.childNodes[this.fixed]);
    this.fence = fence;
  }
}

function offsetOfLine(source, line) {
  const ends = /\r\n?|\n/g;
  for (let i = 0; i < line; i += 1) ends.exec(source);
  return ends.lastIndex;
}
