// Closes what a growing text has opened and not yet closed, so that it shows in its final style from the start.

const FENCE_LINE = /^\s*(```|~~~)/gm;

/** `source` with open code, strong, struck text and links of its last paragraph closed. */
export function closeHalf(source) {
  if ((source.match(FENCE_LINE) ?? []).length % 2 === 1) return source;
  const start = source.lastIndexOf("\n\n") + 1;
  return source.slice(0, start) + closeParagraph(source.slice(start));
}

function closeParagraph(text) {
  const parts = text.split("`");
  if (parts.length % 2 === 0 && !text.includes("``")) {
    // An odd number of ticks: the last one opens code that has not ended.
    return parts.at(-1) === "" ? text.slice(0, -1) : `${text}\``;
  }
  let closed = text.replace(/!?\[([^[\]\n]*)\]\([^()\s]*$/, "$1");
  for (const marker of ["**", "~~"]) closed = closeMarker(closed, marker);
  return closed;
}

function closeMarker(text, marker) {
  const runs = text.replace(/`[^`]*`/g, "").split(marker);
  if (runs.length % 2 === 1) return text;
  const body = text.trimEnd();
  if (runs.at(-1).trim() === "") return body.endsWith(marker) ? body.slice(0, -marker.length) : text;
  return body.endsWith(marker[0]) ? body + marker[0] : body + marker;
}
