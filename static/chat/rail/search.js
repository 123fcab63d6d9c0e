// The search field: asks a moment after the last letter, never in the middle of a composition, and keeps the focus.

const WAIT_MS = 200;

/** `look(query)` gets what is searched for; an empty text shows everything again. */
export function setUpSearch(field, look) {
  let timer = null;
  let last = "";
  const soon = (wait) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const query = field.value.trim();
      if (query === last) return;
      last = query;
      look(query);
    }, wait);
  };
  field.addEventListener("input", (event) => event.isComposing || soon(WAIT_MS));
  field.addEventListener("compositionend", () => soon(WAIT_MS));
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing || !field.value) return;
    event.stopPropagation();
    field.value = "";
    soon(0);
  });
}
