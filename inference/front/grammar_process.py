"""The front's end of the process that tries grammars: started when it is first needed, and again after it was ended.

Knows the pipe and who waits. Does not know grammars, nor what ends the process (`grammar_trial`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys

import msgspec

from inference.core.messages import FRAME_HEADER, Vocabulary
from inference.front.grammar_trial import frame_of
from inference.types import Grammar

logger = logging.getLogger(__name__)

ARGV = (sys.executable, "-m", "inference.front.grammar_trial")
# It ends by itself after a second or two of the processor's time; so long it may wait for the processor.
PATIENCE_S = 30.0
TOO_COSTLY = "it takes too much time or memory to compile"


class GrammarProcess:
    """One trial at a time: people who send costly grammars wait for each other."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def verdict(self, grammar: Grammar, vocabulary: Vocabulary) -> str:
        """Why no answer can be held to the grammar; empty when it can."""
        async with self._turn:
            try:
                async with asyncio.timeout(PATIENCE_S):
                    return await self._ask(grammar, vocabulary)
            except (EOFError, ConnectionError, TimeoutError):
                logger.warning("a grammar of %d characters was too costly to try", len(grammar.text))
                await self.stop()
                return TOO_COSTLY
            except BaseException:  # nobody waits for the answer, which would be taken for the next one's
                await asyncio.shield(self.stop())
                raise

    async def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _ask(self, grammar: Grammar, vocabulary: Vocabulary) -> str:
        process = self._process or await self._start(vocabulary)
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(frame_of(grammar))
        await process.stdin.drain()
        header = await process.stdout.readexactly(FRAME_HEADER.size)
        body = await process.stdout.readexactly(FRAME_HEADER.unpack(header)[0])
        return msgspec.msgpack.decode(body, type=str)

    async def _start(self, vocabulary: Vocabulary) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(*ARGV, stdin=pipe, stdout=pipe)
        assert self._process.stdin is not None
        self._process.stdin.write(frame_of(vocabulary))
        await self._process.stdin.drain()
        return self._process
