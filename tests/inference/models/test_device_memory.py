"""The memory that is reported is what the system says that this process holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inference.models.device_memory import STATM, meter_of, peak_resident_bytes

# Between two looks the process itself and the system's own book-keeping move by some pages.
TOLERANCE = 16 * 1024 * 1024


def status_bytes(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found.group(1)) * 1024


@pytest.mark.skipif(not STATM.exists(), reason="only there the size of now is told")
def test_the_size_now_is_that_of_the_system() -> None:
    assert meter_of("cpu")() == pytest.approx(status_bytes("VmRSS"), abs=TOLERANCE)
    assert status_bytes("VmSize") - status_bytes("VmRSS") > 2 * TOLERANCE, "both would have passed"


@pytest.mark.skipif(not STATM.exists(), reason="there is nothing to compare with elsewhere")
def test_the_largest_size_is_that_of_the_system() -> None:
    assert peak_resident_bytes() == pytest.approx(status_bytes("VmHWM"), abs=TOLERANCE)
