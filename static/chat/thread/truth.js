// The truth line under an answer: where it came from, how fast, what was reused; a click shows where time went.

import { el, icon } from "../parts/dom.js";
import { formatAge, formatMs, formatNumber, t } from "../parts/i18n.js";
import { speed } from "../state/generation.js";

const PHASES = ["queue", "prefill", "decode", "delivery"];

/** The line for a finished `generation`. */
export function truthLine(generation) {
  const details = el("div", { className: "breakdown", hidden: true });
  const button = el("button", { type: "button", className: "truth", "aria-expanded": "false" }, ...facts(generation));
  if (!generation.ttft_ms && !generation.decode_ms) button.disabled = true;
  button.addEventListener("click", () => {
    if (!details.firstChild) details.append(...breakdown(generation));
    details.hidden = !details.hidden;
    button.setAttribute("aria-expanded", String(!details.hidden));
  });
  return el("div", { className: generation.origin === "model" ? "truth-box" : "truth-box cached" }, button, details);
}

function facts(generation) {
  const parts = [origin(generation)];
  if (generation.ttft_ms) parts.push(t("truth.first", { time: formatMs(generation.ttft_ms) }));
  if (generation.generated_tokens) {
    const perSecond = speed(generation);
    const tokens = t("truth.tokens", { count: generation.generated_tokens, n: formatNumber(generation.generated_tokens) });
    parts.push(perSecond ? t("truth.tokens_speed", { tokens, speed: t("truth.speed", { n: formatNumber(perSecond) }) }) : tokens);
  }
  if (generation.reused_tokens) parts.push(t("truth.reused", { count: generation.reused_tokens, n: formatNumber(generation.reused_tokens) }));
  const trimmed = generation.trimmed_messages;
  if (trimmed) parts.push(el("span", { title: t("truth.trimmed.why") }, t("truth.trimmed", { count: trimmed, n: formatNumber(trimmed) })));
  return parts.map((part) => (part instanceof Node ? part : el("span", {}, part)));
}

/** Where it came from; of a stored answer also its age, and whether it is past its time and being made anew. */
function origin({ origin: source, cache_age_s, cache_is_stale, model }) {
  if (source === "model") return el("span", {}, model || t("truth.model"));
  const kind = t(source === "exact" ? "truth.exact" : "truth.similar");
  const known = [kind, cache_age_s === null ? "" : formatAge(cache_age_s), cache_is_stale ? t("truth.stale") : ""];
  return el("span", { className: "leaf" }, icon("leaf"), known.filter(Boolean).join(" · "));
}

function breakdown(generation) {
  const known = PHASES.map((phase) => [phase, generation[`${phase}_ms`]]).filter(([, ms]) => ms >= 0.5);
  const total = known.reduce((sum, [, ms]) => sum + ms, 0) || 1;
  const bar = el("div", { className: "bar", "aria-hidden": "true" });
  const legend = el("dl", {});
  for (const [phase, ms] of known) {
    const part = el("i", { className: phase });
    part.style.flexGrow = String(Math.max(ms / total, 0.01));
    bar.append(part);
    legend.append(el("div", { className: phase }, el("dt", {}, t(`phase.${phase}`)), el("dd", {}, formatMs(ms))));
  }
  return [bar, legend];
}
