// Which templates come first: those that fit what is typed, what the draft seems to want, and what this person uses.
// Pure: time and history are given.

const DAY_MS = 86_400_000;
const FORGOTTEN_AFTER_DAYS = 30;
const LATIN = /[\p{Script=Latin}\p{N}]+/gu;
const CJK = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]+/gu;
const FITS = { title: 3, body: 1, intent: 2, own: 0.5, everybody: 0.1, language: 0.4 };

/** The words of a text, and each two neighbours of Chinese characters, which have no blanks between words. */
export function terms(text) {
  const lower = text.toLowerCase();
  const found = new Set((lower.match(LATIN) ?? []).filter((word) => word.length > 1));
  for (const run of lower.match(CJK) ?? []) {
    const signs = [...run];
    if (signs.length === 1) found.add(run);
    for (let i = 1; i < signs.length; i += 1) found.add(signs[i - 1] + signs[i]);
  }
  return found;
}

/** 0 to 1: how much of the template's title and body the draft speaks of; the title counts more. */
export function intent(draft, template) {
  const wanted = terms(draft);
  if (wanted.size === 0) return 0;
  const share = (text) => {
    const own = terms(text);
    const both = [...own].filter((term) => wanted.has(term)).length;
    return own.size ? both / Math.sqrt(own.size * wanted.size) : 0;
  };
  return Math.min(1, 0.7 * share(template.title) + 0.3 * share(template.body));
}

/** 0 where `text` has not all letters of `query` in order; 1 where it begins with them; between, the closer the more. */
export function fuzzy(query, text) {
  const wanted = [...query.toLowerCase().replace(/\s+/g, "")];
  const given = [...text.toLowerCase()];
  if (wanted.length === 0) return 1;
  let place = -1;
  let first = -1;
  for (const sign of wanted) {
    place = given.indexOf(sign, place + 1);
    if (place < 0) return 0;
    if (first < 0) first = place;
  }
  const spread = place - first + 1;
  return (wanted.length / spread) * (first === 0 ? 1 : 0.8);
}

/** How much a person used it lately: `history` is { id: [count, time of the last use] }. */
function habit(template, history, now) {
  const [count, last] = history[template.id] ?? [0, 0];
  const days = Math.max(0, now - last) / DAY_MS;
  return FITS.own * Math.log2(1 + count) * Math.exp(-days / FORGOTTEN_AFTER_DAYS) + FITS.everybody * Math.log2(1 + template.use_count);
}

/**
 * Those to choose from. Everybody's stand in each language of the page, `languages`: those of the other ones are
 * offered only to whoever asks for them by name, has used them here, or writes of what they do.
 */
export function offered(templates, { query = "", draft = "", history = {}, language, languages }) {
  if (query) return templates;
  const isOther = (template) => template.is_shared && template.language !== language && languages.includes(template.language);
  return templates.filter((template) => !isOther(template) || history[template.id] || intent(draft, template) > 0);
}

/** The templates that fit `query`, the likeliest first. Without a query all fit, and the `draft` speaks instead. */
export function ranked(templates, { query = "", draft = "", history = {}, language = "", now = Date.now() }) {
  const scored = templates.map((template) => [score(template, query), template]).filter(([fit]) => fit > 0);
  const total = ([fit, template]) =>
    fit + FITS.intent * intent(draft, template) + habit(template, history, now) + (template.language === language ? FITS.language : 0);
  return scored
    .map((pair) => [total(pair), pair[1]])
    .sort(([a, one], [b, other]) => b - a || one.title.localeCompare(other.title))
    .map(([, template]) => template);
}

function score(template, query) {
  const inTitle = fuzzy(query, template.title);
  // Scattered letters occur in every long text: a body has to hold the query as it is.
  const isInBody = template.body.toLowerCase().includes(query.trim().toLowerCase());
  return FITS.title * inTitle + (isInBody ? FITS.body : 0);
}
