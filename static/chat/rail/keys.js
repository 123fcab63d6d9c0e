// The list by keyboard: arrows walk, Enter opens, F2 renames, Delete asks, Space picks, the right arrow goes to the
// button for more.

const STEPS = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };

/** `acts`: rename(id), remove(id), pick(id), pickAll(), endPicking(), isPicking(). */
export function listenForKeys(box, search, acts) {
  box.addEventListener("keydown", (event) => pressed(event, box, search, acts));
  search.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" || event.isComposing) return;
    event.preventDefault();
    focusRow(linksOf(box)[0]);
  });
}

function pressed(event, box, search, acts) {
  const row = event.target.closest("li");
  if (!row || event.altKey) return;
  const { id } = row.dataset;
  const isPlain = !event.ctrlKey && !event.metaKey;
  const act = {
    ArrowRight: () => row.querySelector("button")?.focus(),
    ArrowLeft: () => focusRow(row.querySelector("a")),
    F2: () => acts.rename(id),
    Delete: () => acts.remove(id),
    " ": () => acts.pick(id),
    Escape: acts.isPicking() ? () => acts.endPicking() : null,
    a: !isPlain && acts.isPicking() ? () => acts.pickAll() : null,
  }[event.key];
  const isButton = event.target.closest("button");
  if (event.key in STEPS) step(STEPS[event.key], row, box, search);
  else if (!act || (isButton && event.key === " ") || (isPlain && event.key === "a")) return;
  else act();
  event.preventDefault();
}

function step(by, row, box, search) {
  const links = linksOf(box);
  const place = links.indexOf(row.querySelector("a")) + by;
  if (place === -1) search.focus();
  else focusRow(links[Math.max(0, Math.min(links.length - 1, place))]);
}

const linksOf = (box) => [...box.querySelectorAll("li > a")];

/** The line with the focus is the one that Tab comes back to. */
function focusRow(link) {
  if (!link) return;
  for (const other of link.closest(".conversations").querySelectorAll('li > a[tabindex="0"]')) other.tabIndex = -1;
  link.tabIndex = 0;
  link.focus();
  link.scrollIntoView({ block: "nearest" });
}
