// Variables of a template, `{{name}}`: their names, and the text with their values. Pure; the server reads them alike.

const VARIABLE = /\{\{\s*([\p{L}\p{N}_]{1,40})\s*\}\}/gu;

/** The names in `body`, each once, in the order in which they first come. */
export const variablesOf = (body) => [...new Set([...body.matchAll(VARIABLE)].map(([, name]) => name))];

/** `body` with the given `values` filled in; what has no value stays as it is. */
export const filled = (body, values) => body.replace(VARIABLE, (whole, name) => (Object.hasOwn(values, name) ? values[name] : whole));

/** `body` in pieces, [words, whether they are a variable's name]; the braces are left out. */
export function pieces(body) {
  const parts = body.split(VARIABLE); // every second one is a name
  return parts.map((words, i) => [words, i % 2 === 1]).filter(([words]) => words);
}

/** Which variable a draft that is already there belongs into: the last one, which is the text itself as a rule. */
export const placeOfDraft = (names) => names.find((name) => /^(text|文本|内容|正文)$/iu.test(name)) ?? names.at(-1) ?? null;
