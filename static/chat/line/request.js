// The page's JSON requests. Every failure is an ApiError with a stable code.

// A network that swallows what is sent must not keep anybody waiting for ever.
const PATIENCE_MS = 30_000;

export class ApiError extends Error {
  /** `retry_after_s`: when it may go better; `resets_at`: when a quota that is used up has room again. Both may be null. */
  constructor(status, code, { message = code, retry_after_s = null, resets_at = null } = {}) {
    super(message);
    Object.assign(this, { status, code, retry_after_s, resets_at });
  }
}

const csrfToken = () => document.querySelector("meta[name=csrf-token]").content;

/** The answer's JSON, or null where it has none. Raises ApiError. */
export async function request(method, path, body, options = {}) {
  const headers = { Accept: "application/json" };
  if (method !== "GET") headers["X-CSRFToken"] = csrfToken();
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await answered(path, { method, headers, body: body && JSON.stringify(body), signal: AbortSignal.timeout(PATIENCE_MS), ...options });
  return response.status === 204 ? null : response.json();
}

/** The response of a request that went well. Raises ApiError. */
export async function answered(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "offline");
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

/** What the server said of a failure: `{error: {code, message}}`, or `{detail}` of the framework, or no JSON at all. */
export async function errorOf(response) {
  const body = await response.json().catch(() => null);
  const told = body?.error ?? { message: typeof body?.detail === "string" ? body.detail : undefined };
  const code = response.status === 401 ? "signed_out" : (told.code ?? "request_failed");
  const seconds = Number.parseFloat(response.headers.get("Retry-After"));
  const retry_after_s = Number.isFinite(seconds) ? seconds : null;
  return new ApiError(response.status, code, { message: told.message, retry_after_s, resets_at: resetOf(code, retry_after_s) });
}

/** Over HTTP a used-up quota tells the seconds only. */
function resetOf(code, retry_after_s) {
  if (code !== "quota_exceeded" || retry_after_s === null) return null;
  return new Date(Date.now() + retry_after_s * 1000).toISOString();
}
