// The page's texts in the language that the server chose. Catalogues are plain modules, one per language.

import en from "../texts/en.js";
import zhHans from "../texts/zh-hans.js";

export const catalogues = { en, "zh-hans": zhHans };
export const language = document.documentElement.lang.toLowerCase() in catalogues ? document.documentElement.lang.toLowerCase() : "en";
const texts = catalogues[language];

/** The text `key` with {names} filled in. With `count`, the form `key.one` is taken where the language has it. */
export function t(key, values = {}) {
  const single = values.count === 1 && texts[`${key}.one`];
  const text = single || (texts[key] ?? key);
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

export const has = (key) => key in texts;

/** The text for an error code, or `otherwise` for one that has none. */
export function errorText(code, values, otherwise = "error.general") {
  return t(has(`error.${code}`) ? `error.${code}` : otherwise, values);
}

const written = (tag) => {
  const { language: spoken, script } = new Intl.Locale(tag).maximize();
  return spoken + script;
};
/** For dates and numbers: the reader's own kind of the page's language, en-GB or en-US, where the browser names one. */
export const locale = navigator.languages.find((tag) => written(tag) === written(language)) ?? language;

const number = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 });
export const formatNumber = (value) => number.format(value);

/** A duration in words a person reads at a glance: 240 ms, 1.4 s. */
export function formatMs(ms) {
  return ms < 1000 ? t("ms", { n: Math.round(ms) }) : t("seconds", { n: formatNumber(ms / 1000) });
}

/** A time to come: the hour today, else the day as well. */
export function formatWhen(date) {
  const isToday = date.toDateString() === new Date().toDateString();
  return new Intl.DateTimeFormat(locale, { ...(!isToday && { dateStyle: "medium" }), timeStyle: "short" }).format(date);
}

/** How old something is: just now, 5 min, 3 h, 2 days. */
export function formatAge(seconds) {
  if (seconds < 60) return t("age.now");
  if (seconds < 3600) return t("age.minutes", { n: Math.floor(seconds / 60) });
  if (seconds < 86_400) return t("age.hours", { n: Math.floor(seconds / 3600) });
  return t("age.days", { count: Math.floor(seconds / 86_400), n: Math.floor(seconds / 86_400) });
}
