"""The frame rate of one socket, with a clock of its own."""

from __future__ import annotations

from chatsite.chat import limits


def test_the_bucket_gives_a_burst_and_then_a_rate() -> None:
    now = 0.0
    bucket = limits.TokenBucket(per_s=20, burst=40, clock=lambda: now)
    assert sum(bucket.take() for _ in range(100)) == 40
    now = 1.0
    assert sum(bucket.take() for _ in range(100)) == 20
    now = 1000.0
    assert sum(bucket.take() for _ in range(100)) == 40
