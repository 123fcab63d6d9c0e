"""The scripted core's own promises, where the contract suite would meet them only by chance."""

from __future__ import annotations

import socket
import threading

from inference.core.messages import FRAME_HEADER, Admit, Inbox, SamplingSpec, StepPack, pack, unpack_from_core
from inference.testing.core import ScriptedCore
from inference.testing.script import script_text


def test_a_waiting_answer_begins_when_all_running_ones_end_in_one_step() -> None:
    """A loop that sleeps until a running one is due would sleep for ever: nothing runs."""
    ours, theirs = socket.socketpair()
    ours.settimeout(5)
    core = threading.Thread(target=ScriptedCore(theirs, max_batch=2).run)
    core.start()
    prompt = list(script_text(text="x").encode())
    admits = [Admit(name, prompt, SamplingSpec(), 1, [], b"", b"") for name in "abc"]
    ours.sendall(pack(Inbox(list(admits))))
    ended: set[str] = set()
    with ours, ours.makefile("rb") as frames:
        while len(ended) < 3:
            (size,) = FRAME_HEADER.unpack(frames.read(FRAME_HEADER.size))
            message = unpack_from_core(frames.read(size))
            if isinstance(message, StepPack):
                ended |= {out.id for out in message.finished}
    core.join(5)
    theirs.close()
    assert ended == {"a", "b", "c"}
