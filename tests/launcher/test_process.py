"""One child: identity, priority, lines, and an end that leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace

from chatsite.launcher.identity import unprivileged_identity
from chatsite.launcher.process import LONGEST_LINE_BYTES, SHIM, Child, run_to_end
from tests.patience import PATIENCE_S

from .processes import IGNORES_TERM, STAYS, python, wait_for_end

NEVER_HURRY = asyncio.Event


async def _started(script: str) -> tuple[Child, list[str]]:
    """A child that has printed its first line, and the lines so far."""
    lines: list[str] = []
    printed = asyncio.Event()

    def on_line(line: str) -> None:
        lines.append(line)
        printed.set()

    child = await Child.spawn(python(script), on_line)
    await printed.wait()
    return child, lines


async def test_status_and_last_line_are_reported() -> None:
    status, last_line = await run_to_end(
        python("print('one'); print('two'); raise SystemExit(7)"), lambda _: None
    )
    assert (status, last_line) == (7, "two")


async def test_both_outputs_are_passed_on_and_broken_text_is_harmless() -> None:
    lines: list[str] = []
    script = "import sys; sys.stdout.buffer.write(b'\\xff\\n'); sys.stdout.flush(); sys.stderr.write('end')"
    await run_to_end(python(script), lines.append)
    assert lines == ["\ufffd", "end"]


async def test_an_endless_line_is_passed_on_in_pieces() -> None:
    lines: list[str] = []
    await run_to_end(python(f"print('x' * {LONGEST_LINE_BYTES * 20})"), lines.append)
    assert len(lines) > 1
    assert sum(map(len, lines)) == LONGEST_LINE_BYTES * 20


async def test_a_child_runs_some_nice_steps_lower() -> None:
    command = replace(python("import os; print(os.nice(0))"), nice=3)
    _, line = await run_to_end(command, lambda _: None)
    assert int(line) == os.nice(0) + 3


async def test_a_child_has_a_group_of_its_own_in_the_session_that_gives_nice_steps_their_meaning() -> None:
    script = "import os; print(os.getpid() == os.getpgid(0), os.getsid(0))"
    _, line = await run_to_end(python(script), lambda _: None)
    assert line == f"True {os.getsid(0)}"


async def test_a_program_that_does_not_exist_is_a_clear_line() -> None:
    status, line = await run_to_end(replace(python(""), argv=("/no/such/program",)), lambda _: None)
    assert status != 0
    assert "/no/such/program" in line


async def test_servers_never_see_themselves_as_root() -> None:
    command = replace(python("import os; print(os.geteuid())"), identity=await unprivileged_identity())
    status, line = await run_to_end(command, lambda _: None)
    assert status == 0
    assert int(line) != 0


async def test_a_child_that_outlived_its_parent_before_it_began_ends_at_once() -> None:
    nobody = str(2**22 + 1)  # no process has this number
    shim = [
        sys.executable,
        "-I",
        "-S",
        str(SHIM),
        nobody,
        "9",
        "0",
        "keep",
        sys.executable,
        "-c",
        "print('ran')",
    ]
    process = await asyncio.create_subprocess_exec(*shim, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode != 0
    assert output == b""


async def test_a_polite_stop_ends_a_child_without_a_kill() -> None:
    script = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(5)); " + STAYS
    child, _ = await _started(script)
    await child.stop(signal.SIGTERM, 30, NEVER_HURRY())
    assert await child.wait() == 5


async def test_a_child_that_ignores_the_signal_is_killed_after_its_grace() -> None:
    child, _ = await _started(IGNORES_TERM)
    await child.stop(signal.SIGTERM, 0.05, NEVER_HURRY())
    assert await child.wait() == -signal.SIGKILL


async def test_hurry_cuts_the_grace_short() -> None:
    child, _ = await _started(IGNORES_TERM)
    hurry = asyncio.Event()
    stopping = asyncio.create_task(child.stop(signal.SIGTERM, 3600, hurry))
    hurry.set()
    async with asyncio.timeout(PATIENCE_S):
        await stopping
    assert not child.is_running


async def test_what_a_child_left_behind_ends_with_it() -> None:
    script = (
        "import subprocess, sys, signal\n"
        "helper = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
        "print(helper.pid, flush=True)\n"
        "signal.pause()\n"
    )
    child, lines = await _started(script)
    await child.stop(signal.SIGTERM, 5, NEVER_HURRY())
    assert wait_for_end(int(lines[0]))
