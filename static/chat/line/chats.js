// The page's requests about the list of chats and about whole chats: files and links.

import { answered, request } from "./request.js";

const MOST_AT_ONCE = 200;
const UPLOAD_WITHIN_MS = 300_000;

/** A page of the list that `wanted` { query, tag, isArchived } asks for. */
export function listConversations({ query, tag, isArchived }, cursor) {
  const asked = { ...(query && { q: query }), ...(tag && { tag }), ...(isArchived && { archived: true }), ...(cursor && { cursor }) };
  return request("GET", `/api/conversations?${new URLSearchParams(asked)}`);
}

export const listTags = () => request("GET", "/api/conversations/tags");

/** One `action` on all `ids`, as many at once as the server takes. */
export async function changeMany(action, ids, tag = null) {
  for (let start = 0; start < ids.length; start += MOST_AT_ONCE) {
    await request("POST", "/api/conversations/bulk", { action, ids: ids.slice(start, start + MOST_AT_ONCE), ...(tag && { tag }) });
  }
}

export const listShares = (id) => request("GET", `/api/conversations/${id}/shares`);
export const makeShare = (id) => request("POST", `/api/conversations/${id}/shares`, {});
export const revokeShare = (id) => request("DELETE", `/api/shares/${id}`);

/** Sends a file of conversations as it is. */
export const importFile = (file) => post("/api/conversations/import", file).then((response) => response.json());

/** The named conversations as one file. */
export const exportMany = (ids, form) => post("/api/conversations/export", JSON.stringify({ ids, form })).then((response) => response.blob());

function post(path, body) {
  const headers = { "Content-Type": "application/json", "X-CSRFToken": document.querySelector("meta[name=csrf-token]").content };
  return answered(path, { method: "POST", headers, body, signal: AbortSignal.timeout(UPLOAD_WITHIN_MS) });
}
