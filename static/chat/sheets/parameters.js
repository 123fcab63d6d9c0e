// The sampling parameters of a conversation: their bounds, which are the server's, and what a typed text means. Pure.

// A seed may be larger for the server; a number of a script is exact up to here.
const LARGEST_EXACT = Number.MAX_SAFE_INTEGER;

export const PARAMETERS = [
  { name: "temperature", min: 0, max: 2, step: 0.1 },
  { name: "max_tokens", min: 1, max: 1_000_000, isWhole: true },
  { name: "top_p", min: 0, max: 1, step: 0.05, isAboveMin: true },
  { name: "top_k", min: 0, max: 1_000_000, isWhole: true },
  { name: "min_p", min: 0, max: 1, step: 0.05 },
  { name: "repetition_penalty", min: 0, max: 10, step: 0.1, isAboveMin: true },
  { name: "presence_penalty", min: -2, max: 2, step: 0.1 },
  { name: "frequency_penalty", min: -2, max: 2, step: 0.1 },
  { name: "seed", min: 0, max: LARGEST_EXACT, isWhole: true },
  { name: "stop", most: 16, longest: 200 },
];
export const MAX_PROMPT_CHARS = 50_000;

/** What `text` means for the parameter: { value }, { value: undefined } for nothing typed, or { problem, values }. */
export function parsed(parameter, text) {
  return parameter.name === "stop" ? parsedStops(parameter, text) : parsedNumber(parameter, text.trim());
}

/** The text that stands for `value` in the form. */
export function shownAs(parameter, value) {
  if (value === undefined || value === null) return "";
  return parameter.name === "stop" ? value.join("\n") : String(value);
}

function parsedNumber({ min, max, isWhole, isAboveMin }, text) {
  if (!text) return { value: undefined };
  const value = Number(text.replace(",", "."));
  if (Number.isNaN(value)) return { problem: "bound.number", values: {} };
  if (isWhole && !Number.isInteger(value)) return { problem: "bound.whole", values: {} };
  if (value < min || value > max || (isAboveMin && value === min)) {
    return { problem: isAboveMin ? "bound.above" : "bound.between", values: { min, max } };
  }
  return { value };
}

/** One stop text per line; blanks count, because they may be meant. */
function parsedStops({ most, longest }, text) {
  const stops = text.split("\n").filter((line) => line !== "");
  if (stops.length === 0) return { value: undefined };
  if (stops.length > most) return { problem: "bound.stops", values: { n: most } };
  if (stops.some((stop) => [...stop].length > longest)) return { problem: "bound.stop_length", values: { n: longest } };
  return { value: stops };
}
