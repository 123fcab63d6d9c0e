// The page's JSON requests. Every failure is an ApiError with a stable code.

export class ApiError extends Error {
  constructor(status, code) {
    super(code);
    Object.assign(this, { status, code });
  }
}

const csrfToken = () => document.querySelector("meta[name=csrf-token]").content;

async function request(method, path, body) {
  const headers = { Accept: "application/json" };
  if (method !== "GET") headers["X-CSRFToken"] = csrfToken();
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method, headers, body: body && JSON.stringify(body), credentials: "same-origin" });
  } catch {
    throw new ApiError(0, "offline");
  }
  if (!response.ok) throw new ApiError(response.status, response.status === 401 ? "signed_out" : "request_failed");
  return response.status === 204 ? null : response.json();
}

export const listConversations = (query, cursor) =>
  request("GET", `/api/conversations?${new URLSearchParams({ ...(query && { q: query }), ...(cursor && { cursor }) })}`);
/** A conversation with the messages of all its branches, which come in pages, the last one first. */
export async function getConversation(id) {
  const path = `/api/conversations/${id}`;
  const conversation = await request("GET", path);
  let messages = [];
  let before = null;
  do {
    const page = await request("GET", `${path}/messages?${new URLSearchParams({ branch: "all", limit: 200, ...(before && { before }) })}`);
    messages = [...page.items, ...messages];
    ({ before } = page);
  } while (before);
  return { ...conversation, messages };
}
export const changeConversation = (id, changes) => request("PATCH", `/api/conversations/${id}`, changes);
/** `verdict` is "up" or "down"; the latest one counts. */
export const rateMessage = (id, verdict) => request("PUT", `/api/messages/${id}/feedback`, { verdict });
export const deleteConversation = (id) => request("DELETE", `/api/conversations/${id}`);
