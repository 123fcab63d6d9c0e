"""The process in which a grammar is tried before anything accepts it: `python -m inference.front.grammar_trial`.

It reads the vocabulary from its input and then grammars, one after the other, and writes for each why no answer can be
held to it, or nothing. A grammar that takes too much time or memory ends the process, which is an answer too: the
library bounds its steps, but some schemas of a few hundred characters take it minutes or gigabytes to compile. Ends
with its input.
"""

from __future__ import annotations

import math
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import BinaryIO

import msgspec

from inference.core.grammar import Compiler
from inference.core.grammar_text import GrammarNotUsable
from inference.core.messages import FRAME_HEADER, Vocabulary
from inference.types import Grammar

MAX_CPU_S = 1
MAX_GROWTH_BYTES = 128 * 1024 * 1024


def frame_of(value: object) -> bytes:
    body = msgspec.msgpack.encode(value)
    return FRAME_HEADER.pack(len(body)) + body


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the front closes the pipe
    source, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever the library prints is no answer
    compiler = Compiler(msgspec.msgpack.decode(_read(source), type=Vocabulary))
    _bound_memory()
    while body := _read(source):
        _bound_time()
        answers.write(frame_of(verdict(compiler, msgspec.msgpack.decode(body, type=Grammar))))
        answers.flush()


def verdict(compiler: Compiler, grammar: Grammar) -> str:
    """Why no answer can be held to the grammar; empty when it can."""
    try:
        compiler.try_out(grammar)
    except GrammarNotUsable as error:
        return str(error) or "it cannot be used"
    return ""


def _read(source: BinaryIO) -> bytes:
    """The next frame's body; empty at the end of the input."""
    header = source.read(FRAME_HEADER.size)
    return source.read(FRAME_HEADER.unpack(header)[0]) if header else b""


def _bound_memory() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform != "linux":
        return
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + MAX_GROWTH_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _bound_time() -> None:
    """Whole seconds of the processor: a busy machine makes nobody's grammar a bad one."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time()) + MAX_CPU_S, hard))


if __name__ == "__main__":
    main()
