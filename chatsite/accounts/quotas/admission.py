"""Counting before anything is done: all that is asked at once fits into every quota, or nothing of it is counted.

Call inside the transaction that makes the rows of the answers, with nothing but inserts after it: the counters are
locked until it ends, those of a business line for everybody in it. Knows counters; knows no text and no engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID

from django.conf import settings

from chatsite import statements
from chatsite.accounts.models import QuotaUse
from chatsite.accounts.quotas.refusals import QuotaExceeded, too_many_live, unknown_account
from chatsite.accounts.quotas.rules import Limit, in_force
from chatsite.accounts.quotas.standing import Standing, standing
from chatsite.chat.models import LIVE_STATES
from chatsite.chat.turn import Caller

# Past its deadline an answer is ended within 15 s (`adoption.reap`), and its end is tried to be stored for 30 s.
SETTLED_WITHIN_S = 60.0
HOLD_USER = "SELECT 1 FROM accounts_user WHERE id = %s FOR NO KEY UPDATE"
# Past its deadline an answer is dead whatever its row says; a crash must not lock its user out.
WANTED = "unnest(%s::varchar[], %s::integer[], %s::timestamptz[]) AS wanted (subject, window_s, window_start)"
MAKE = f"""
INSERT INTO accounts_quotause (subject, window_s, window_start, requests, tokens, reserved_tokens)
SELECT subject, window_s, window_start, 0, 0, 0 FROM {WANTED}
 WHERE NOT EXISTS (SELECT 1 FROM accounts_quotause AS known WHERE known.subject = wanted.subject
                      AND known.window_s = wanted.window_s AND known.window_start = wanted.window_start)
 ORDER BY subject, window_s, window_start ON CONFLICT DO NOTHING
"""  # noqa: S608 - this module's own words
# All columns, in the model's order.
OF_USE = ("id", "subject", "window_s", "window_start", "requests", "tokens", "reserved_tokens")
LOCK = f"""
SELECT {", ".join(OF_USE)} FROM accounts_quotause AS known JOIN {WANTED} USING (subject, window_s, window_start)
 ORDER BY id FOR UPDATE OF known
"""  # noqa: S608 - the same
COUNT = """
UPDATE accounts_quotause SET requests = requests + %s, reserved_tokens = reserved_tokens + %s WHERE id = ANY(%s)
"""
HOLD = """
INSERT INTO accounts_quotahold (generation, uses, tokens, expires_at)
SELECT generation, %s::bigint[], tokens, statement_timestamp() + make_interval(secs => %s)
  FROM unnest(%s::uuid[], %s::bigint[]) AS held (generation, tokens)
"""
COUNT_LIVE = """
SELECT count(*) FROM chat_generation WHERE user_id = %s AND state = ANY(%s) AND deadline_at > statement_timestamp()
"""


def one_at_a_time(user_id: int) -> None:
    """Holds the user's row until the transaction ends: whoever asks beside waits, and so does an erasure.

    Taken before every other lock of a transaction. Raises ReplyRefused for a user who is gone.
    """
    if statements.first(HOLD_USER, [user_id]) is None:
        raise unknown_account()


def admit_answers(
    caller: Caller, generations: Sequence[UUID], most_tokens: Callable[[UUID], int]
) -> tuple[Standing, ...]:
    """Like `admit`, for answers whose rows were made in this transaction, after `one_at_a_time`.

    Raises ReplyRefused when they are too many beside those that are in the making.
    """
    live = statements.value(COUNT_LIVE, [caller.user_id, list(LIVE_STATES)])
    if live > settings.CONFIG.max_live_per_user:
        raise too_many_live(live - len(generations))
    return admit(caller, generations, most_tokens)


def admit(
    caller: Caller, generations: Sequence[UUID], most_tokens: Callable[[UUID], int]
) -> tuple[Standing, ...]:
    """Counts one request for each and holds the tokens that each may use at most; where the caller stands then.

    `most_tokens` is asked only where a quota of tokens is in force. Raises QuotaExceeded.
    """
    limits = in_force(caller)
    if not limits:
        return ()
    counts_tokens = any(limit.max_tokens is not None for limit in limits)
    held = {generation: most_tokens(generation) if counts_tokens else 0 for generation in generations}
    uses = _locked(limits)
    before = [standing(limit, use) for limit, use in zip(limits, uses, strict=True)]
    if refusal := QuotaExceeded.of(before, len(held)):
        raise refusal
    _count(uses, held)
    return tuple(
        replace(one, requests=one.requests + len(held), held=one.held + sum(held.values())) for one in before
    )


def _locked(limits: Sequence[Limit]) -> list[QuotaUse]:
    """The counters of `limits`, locked in the one order in which everybody locks them.

    Those of a new window are made first, in an order of their own: nobody holds a lock while waiting there.
    """
    keys = [(limit.subject, limit.window_s, limit.starts_at) for limit in limits]
    wanted = [list(column) for column in zip(*keys, strict=True)]
    statements.changed(MAKE, wanted)
    uses = (QuotaUse.from_db(None, OF_USE, row) for row in statements.every(LOCK, wanted))
    by_key = {(use.subject, use.window_s, use.window_start): use for use in uses}
    return [by_key[key] for key in keys]


def _count(uses: Sequence[QuotaUse], held: dict[UUID, int]) -> None:
    counters = [use.pk for use in uses]
    statements.changed(COUNT, [len(held), sum(held.values()), counters])
    within_s = settings.CONFIG.deadline_s + SETTLED_WITHIN_S
    statements.changed(HOLD, [counters, within_s, list(held), list(held.values())])
