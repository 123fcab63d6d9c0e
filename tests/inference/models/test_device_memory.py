"""The memory that is reported is memory that is really held."""

from __future__ import annotations

import numpy as np

from inference.models.device_memory import STATM, meter_of, peak_resident_bytes

HELD = 64 * 1024 * 1024


def test_what_a_process_holds_shows_at_once() -> None:
    meter = meter_of("cpu")
    before = meter()
    held = np.ones(HELD, dtype=np.uint8)
    assert meter() - before >= HELD * 0.9
    assert len(held) == HELD


def test_the_largest_size_is_no_smaller_than_the_size_now() -> None:
    assert peak_resident_bytes() > 0
    if STATM.exists():
        assert peak_resident_bytes() >= meter_of("cpu")() * 0.9
