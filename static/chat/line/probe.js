// Whether the site can be reached at all, by the plainest request there is.

const PATIENCE_MS = 5_000;

export async function siteAnswers() {
  try {
    return (await fetch("/health/live", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) })).ok;
  } catch {
    return false;
  }
}
