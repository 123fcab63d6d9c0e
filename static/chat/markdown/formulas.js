// Where formulas are in a Markdown text: tokens with their TeX, delimiters included. Knows no DOM and no TeX.
// `$$…$$`, `\[…\]` and `\(…\)` always are; a single dollar is one only under pandoc's rule, and else it is money.

const CLOSING = { $$: "$$", "\\[": "\\]", "\\(": "\\)" };
const DOLLAR = "$";
const BLANK = /\s/;
const PRICE = /^[\d.,\s]+$/;

export function formulas(markdown) {
  markdown.inline.ruler.before("escape", "formula", inlineFormula);
  markdown.block.ruler.before("fence", "formula_block", formulaBlock, { alt: ["paragraph", "blockquote", "list"] });
}

function inlineFormula(state, silent) {
  const { src, pos, posMax } = state;
  const close = CLOSING[src.slice(pos, pos + 2)];
  const end = close ? endOf(src, pos + 2, close) : dollarEnd(src, pos);
  if (end === null || end > posMax) return false;
  if (!silent) state.push("formula", "", 0).content = src.slice(pos, end);
  state.pos = end;
  return true;
}

/** Behind the next `close` from `start` on, or null. Ticks begin code, which no formula reaches into. */
function endOf(src, start, close) {
  const end = src.indexOf(close, start);
  if (end < 0 || src.slice(start, end).trim() === "" || src.slice(start, end).includes("`")) return null;
  return end + close.length;
}

/** Pandoc: no blank behind the first dollar and before the last one, no digit behind that; and never a mere number. */
function dollarEnd(src, pos) {
  if (src[pos] !== DOLLAR || src[pos + 1] === DOLLAR || BLANK.test(src[pos + 1] ?? " ") || /[0-9A-Za-z]/.test(src[pos - 1] ?? "")) return null;
  for (let at = pos + 1; at < src.length; at += 1) {
    if (src[at] === "\\") at += 1;
    else if (src[at] === "`") return null;
    else if (src[at] === DOLLAR) {
      const isEnd = !BLANK.test(src[at - 1]) && !/\d/.test(src[at + 1] ?? "") && !PRICE.test(src.slice(pos + 1, at));
      return isEnd ? at + 1 : null;
    }
  }
  return null;
}

/**
 * A formula that begins a line and ends one, without a blank line in it. While a text grows (`env.isOpen`), one that has
 * not ended is held together: what will be inside must not be taken for lists meanwhile.
 */
function formulaBlock(state, startLine, endLine, silent) {
  const start = state.bMarks[startLine] + state.tShift[startLine];
  const close = CLOSING[state.src.slice(start, start + 2)];
  if (!close || close === "\\)" || state.sCount[startLine] - state.blkIndent >= 4) return false;
  if (!mayBegin(state.src.slice(start + 2, state.eMarks[startLine]), close)) return false;
  if (silent) return true;
  const { line, isClosed } = lastLine(state, startLine, endLine, close);
  if (!isClosed && !(state.env.isOpen && line === endLine)) return false;
  const token = state.push("formula_block", "", 0);
  token.map = [startLine, line];
  token.content = state.getLines(startLine, line, state.blkIndent, false).trim();
  token.meta = { isClosed };
  state.line = line;
  return true;
}

/** By this line alone, so that it never changes: nothing stands behind an end on it. */
function mayBegin(rest, close) {
  const end = rest.indexOf(close);
  return end < 0 || (rest.slice(end + 2).trim() === "" && rest.slice(0, end).trim() !== "");
}

/** Behind the line that ends the formula, or behind the last one that belongs to it. */
function lastLine(state, startLine, endLine, close) {
  for (let line = startLine; line < endLine; line += 1) {
    const isOutside = state.isEmpty(line) || (line > startLine && state.sCount[line] < state.blkIndent);
    if (isOutside) return { line, isClosed: false };
    const skipped = state.bMarks[line] + state.tShift[line] + (line === startLine ? 2 : 0);
    const text = state.src.slice(skipped, state.eMarks[line]);
    const end = text.indexOf(close);
    if (end >= 0) return { line: line + 1, isClosed: text.slice(end + 2).trim() === "" };
  }
  return { line: endLine, isClosed: false };
}
