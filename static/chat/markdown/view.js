// Shows a growing Markdown text. Finished blocks and list items are never touched again, the lines of an open fence
// are only appended, and what is left is parsed anew: the work stays linear in the text. Stored texts take this path too.

import { blocksOf, parse } from "./parser.js";
import { build } from "./build.js";
import { closeHalf } from "./half.js";
import { morphChildren } from "./morph.js";
import { OpenFence } from "./fence.js";
import { colourWhenNear } from "./highlight.js";

export class MarkdownView {
  constructor(root) {
    this.root = root;
    this.reset();
  }

  reset() {
    this.text = "";
    this.isWhole = false;
    this.done = 0; // characters that belong to finished blocks and items
    this.fixed = 0; // children of root that are finished
    this.items = 0; // finished items of the list that is child number `fixed`; the text from `done` on continues it
    this.checked = 0; // up to which line end finished blocks were looked for
    this.fence = null;
    this.root.replaceChildren();
  }

  /** Shows `text`, which as a rule continues the text shown before. */
  update(text, isFinal) {
    if (isFinal && this.isWhole && text === this.text) return;
    if (!text.startsWith(this.text)) this.reset();
    this.text = text;
    this.isWhole = isFinal;
    this.draw(isFinal);
    if (isFinal) this.settle(this.fixed);
  }

  draw(isFinal) {
    do {
      if (this.fence && !this.feedFence(isFinal)) return;
      this.finishBlocks(isFinal);
    } while (this.fence);
    const rest = this.text.slice(this.done);
    this.place(build(parse(isFinal ? rest : closeHalf(rest), !isFinal)));
  }

  /** The children of root from number `from` to `to` stay as they are. */
  settle(from, to) {
    colourWhenNear([...this.root.childNodes].slice(from, to));
  }

  /** Makes what follows the finished part equal to `nodes`; with `keepRest`, what stands after them stays. */
  place(nodes, keepRest = false) {
    if (this.items === 0 || nodes.length === 0) {
      morphChildren(this.root, nodes, this.fixed, keepRest);
      return;
    }
    const [list, ...others] = nodes;
    morphChildren(this.root.childNodes[this.fixed], [...list.childNodes], this.items);
    morphChildren(this.root, others, this.fixed + 1, keepRest);
  }

  /** True when the fence was closed; what follows it is ordinary text again. */
  feedFence(isFinal) {
    const end = this.fence.feed(this.text, isFinal);
    if (end === null) return false;
    this.done = this.checked = end;
    this.settle(this.fixed, this.fixed + 1);
    this.fixed += 1;
    this.fence = null;
    return true;
  }

  /** Fixes every block and item that another one follows. Only whole lines count: half a line may still become anything. */
  finishBlocks(isFinal) {
    const lineEnd = this.text.lastIndexOf("\n") + 1;
    if (isFinal || lineEnd <= this.checked) return;
    this.checked = lineEnd;
    const source = this.text.slice(this.done, lineEnd);
    const blocks = blocksOf(parse(source, true));
    if (blocks.length === 0) return;
    const last = blocks.at(-1);
    const start = this.done + offsetOfLine(source, last.line);
    const base = this.done;
    if (blocks.length > 1) {
      this.place(build(blocks.slice(0, -1).flatMap((block) => block.tokens)), true);
      this.settle(this.fixed, this.fixed + blocks.length - 1);
      this.fixed += blocks.length - 1;
      this.items = 0;
      this.done = start;
    }
    if (last.itemLines.length > 1) this.finishItems(last, base + offsetOfLine(source, last.itemLines.at(-1)));
    else this.openFence(last, start);
  }

  finishItems(block, lastItemStart) {
    const [list] = build(block.tokens);
    list.lastChild.remove();
    const num = list.childNodes.length;
    this.place([list]);
    this.items += num;
    this.done = lastItemStart;
  }

  openFence(block, start) {
    const fence = OpenFence.from(block.tokens[0], this.text, start);
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
