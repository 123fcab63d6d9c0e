"""Checkpoints of every answer this process makes, once a second, many in one transaction.

One keeper per event loop. Knows progress and leases; does not know where a text comes from, nor how it ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from uuid import UUID
from weakref import WeakKeyDictionary

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import InterfaceError, OperationalError

from chatsite.chat import generations
from chatsite.chat.generations import Progress
from chatsite.db import run_in_db

logger = logging.getLogger(__name__)


# So many are written down at a time: to put two hundred texts together would hold up all streams for milliseconds.
PORTION = 32


class LeaseLost(Exception):
    """The generation ended by another hand, or another process took it."""


class Keeper:
    """Writes while there is anything to keep. A database that is away is tried again, for tokens flow on."""

    def __init__(self) -> None:
        self._kept: dict[UUID, tuple[Callable[[], Progress], asyncio.Future[None]]] = {}
        self._task: asyncio.Task[None] | None = None

    async def keep(self, generation: UUID, progress: Callable[[], Progress]) -> None:
        """Checkpoints `generation` for ever. Raises LeaseLost."""
        lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        mine = self._kept[generation] = progress, lost
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="checkpoints")
        try:
            await lost
        finally:
            if self._kept.get(generation) is mine:  # this process may have adopted it from itself
                del self._kept[generation]

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(settings.CONFIG.checkpoint_s)
            if not self._kept:
                return
            try:
                await self._write()
            except DatabaseError as error:
                logger.warning("checkpoints of %d answers not stored: %s", len(self._kept), error)
            except Exception:  # a mistake of ours in one write must not end the writing
                logger.exception("checkpoints of %d answers not stored", len(self._kept))

    async def _write(self) -> None:
        kept = list(self._kept.items())
        for start in range(0, len(kept), PORTION):
            portion = dict(kept[start : start + PORTION])
            ours = await _stored({generation: progress() for generation, (progress, _) in portion.items()})
            for generation, (_, lost) in portion.items():
                if generation not in ours and not lost.done():
                    lost.set_exception(LeaseLost())


async def _stored(progress: Mapping[UUID, Progress]) -> set[UUID]:
    """Those that are still ours. What the database refuses of one answer costs the others nothing."""
    try:
        return await run_in_db(generations.checkpoint, progress)
    except (OperationalError, InterfaceError):
        raise  # it is away, for all of them
    except DatabaseError as error:
        if len(progress) == 1:
            logger.error("the checkpoint of %s is refused: %s", *progress, error)
            return set(progress)
    found = [await _stored({generation: at}) for generation, at in progress.items()]
    return set().union(*found)


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Keeper] = WeakKeyDictionary()


def keeper() -> Keeper:
    """The keeper of the running loop."""
    return _by_loop.setdefault(asyncio.get_running_loop(), Keeper())
