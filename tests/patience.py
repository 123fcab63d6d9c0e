"""How long a test waits for what must come."""

from __future__ import annotations

# Nothing is measured by it: what comes ends the wait at once, and only what hangs takes it all. Long enough for a
# machine that several test runs share and that stands still for half a minute now and then.
PATIENCE_S = 120.0
