// What went wrong, in one sentence that says what is kept and when it may go better.

import { errorText, formatWhen, has, t } from "./i18n.js";

const USUAL_WAIT_S = 5;

/** Of a refusal or an error { code, retry_after_s, resets_at }, whether a frame or a response told it. */
export function troubleText({ code, retry_after_s, resets_at }, otherwise) {
  if (resets_at && has(`error.${code}.until`)) return t(`error.${code}.until`, { time: formatWhen(new Date(resets_at)) });
  return errorText(code, { seconds: Math.ceil(retry_after_s ?? USUAL_WAIT_S) }, otherwise);
}

/** By which way the page and the server speak; for those who ask, because it works all the same. */
export const lineWords = (line) => t(`line.${line}`);
