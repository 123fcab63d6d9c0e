// Which of several quotas is worth a word: the one of which the smallest part is left. Pure.

/** { kind: requests or tokens, left, limit, resets_at } of the tightest quota that warns; null while none does. */
export function tightest(quotas) {
  const kinds = quotas
    .filter((quota) => quota.is_warning)
    .flatMap(({ requests, tokens, resets_at }) => [
      requests && { kind: "requests", left: requests.left, limit: requests.limit, resets_at },
      tokens && { kind: "tokens", left: tokens.left, limit: tokens.limit, resets_at },
    ])
    .filter(Boolean);
  const share = ({ left, limit }) => (limit ? left / limit : 0);
  return kinds.sort((a, b) => share(a) - share(b) || b.resets_at.localeCompare(a.resets_at))[0] ?? null;
}
