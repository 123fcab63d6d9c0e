// How long a message is beside what the server takes, and what of a draft stands firm. Pure.

const SHOWN_FROM = 0.8;
// The last few tokens may be edited yet: reading them early would be in vain.
const UNSETTLED_CHARS = 24;

/** The length as the server counts it: characters, not halves of them. */
export function lengthOf(text) {
  let length = text.length;
  for (let i = 0; i < text.length - 1; i += 1) {
    if ((text.charCodeAt(i) & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) length -= 1;
  }
  return length;
}

/** { isShown, left } : room that is left, negative when the text is too long; shown from 80 % on. */
export function room(text, limit) {
  // A text that is far from the limit needs no counting: it is looked at after every key.
  const length = text.length < limit * SHOWN_FROM ? text.length : lengthOf(text);
  return { isShown: length >= limit * SHOWN_FROM, left: limit - length };
}

/** What of `draft` is worth reading early: whole words without the end that is being written. */
export function settled(draft) {
  const firm = draft.slice(0, -UNSETTLED_CHARS);
  if (/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]$/u.test(firm)) return firm;
  return firm.slice(0, firm.search(/\S*$/u)).trimEnd();
}
