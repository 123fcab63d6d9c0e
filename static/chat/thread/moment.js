// When a message was written: the hour for today's, day and hour for older ones, as the reader's language has it.

import { el } from "../parts/dom.js";
import { locale } from "../parts/i18n.js";

const hour = new Intl.DateTimeFormat(locale, { timeStyle: "short" });
const dayAndHour = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });
const whole = new Intl.DateTimeFormat(locale, { dateStyle: "full", timeStyle: "medium" });

export function moment(iso) {
  const date = new Date(iso);
  const isToday = date.toDateString() === new Date().toDateString();
  return el("time", { dateTime: iso, title: whole.format(date) }, (isToday ? hour : dayAndHour).format(date));
}
