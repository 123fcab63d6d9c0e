// What stands where in the list: order, days, and what belongs to which list. Pure; knows no elements and no texts.

const DAY_MS = 86_400_000;

/** Pinned ones first, then the latest. */
export function inOrder(items) {
  return [...items].sort((a, b) => b.is_pinned - a.is_pinned || b.updated_at.localeCompare(a.updated_at) || b.id.localeCompare(a.id));
}

/** Whether `item` stands in the list that `wanted` asks for. What a search finds is for the server to say: `isKnown`. */
export function fits(item, { query, tag, isArchived }, isKnown) {
  if (item.is_archived !== isArchived || (tag && !item.tags.includes(tag))) return false;
  return isKnown || !query;
}

/** A first page that was fetched anew, and what was loaded behind it before. */
export function merged(before, page) {
  if (!page.next || !page.items.length) return page.items;
  const fresh = new Set(page.items.map((item) => item.id));
  const known = inOrder([...page.items, ...before.filter((item) => !fresh.has(item.id))]);
  const end = known.findIndex((item) => item.id === page.items.at(-1).id);
  return [...page.items, ...known.slice(end + 1)];
}

/** The items in groups { key, items }: "pinned", "today", "yesterday", "this_week", then months as "2026-04". */
export function groupsOf(items, now = new Date()) {
  const groups = new Map();
  for (const item of items) {
    const key = item.is_pinned ? "pinned" : dayOf(item.updated_at, now);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(item);
  }
  return [...groups].map(([key, group]) => ({ key, items: group }));
}

function dayOf(stamp, now) {
  const day = new Date(stamp);
  const days = Math.round((new Date(now).setHours(0, 0, 0, 0) - new Date(day).setHours(0, 0, 0, 0)) / DAY_MS);
  if (days <= 0) return "today";
  if (days === 1) return "yesterday";
  if (days < 7) return "this_week";
  return `${day.getFullYear()}-${String(day.getMonth() + 1).padStart(2, "0")}`;
}
