// The page's requests about conversations and messages.

import { request } from "./request.js";

const PAGE = 40;

export const getConversation = (id) => request("GET", `/api/conversations/${id}`);
/** A page of the messages of a branch, oldest first: its last ones, or those above `before`. `branch` is any message of it. */
export const getMessages = (id, { branch = "active", before = null } = {}) =>
  request("GET", `/api/conversations/${id}/messages?${new URLSearchParams({ branch, limit: PAGE, ...(before && { before }) })}`);
export const changeConversation = (id, changes) => request("PATCH", `/api/conversations/${id}`, changes);
/** `verdict` is "up" or "down"; the latest one counts. */
export const rateMessage = (id, verdict, reason = "") => request("PUT", `/api/messages/${id}/feedback`, { verdict, reason });
/** Another version of the question `id`, which keeps its answer. */
export const rewordMessage = (id, client_message_id, text) => request("POST", `/api/messages/${id}/reword`, { client_message_id, text });
export const unrateMessage = (id) => request("DELETE", `/api/messages/${id}/feedback`);
export const deleteConversation = (id) => request("DELETE", `/api/conversations/${id}`);
/** The same from a page that is being left. */
export const leaveConversation = (id) => request("DELETE", `/api/conversations/${id}`, undefined, { keepalive: true });
