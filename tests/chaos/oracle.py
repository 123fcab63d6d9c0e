"""What clients did and saw, compared with what the database holds: lost, repeated, reordered, unclear, other text.

A `Tab` behaves as the page does: keeps its outbox, reconnects, sends again what was not acknowledged, attaches to what
was running, and joins text strictly. Knows frames and rows; knows no process.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from tests.chaos.stack import Stack
from tests.chaos.wire import Closed, Refused, Wire
from tests.patience import PATIENCE_S

FINAL = {"complete", "stopped", "failed", "interrupted"}
Frame = dict[str, Any]


@dataclass(slots=True)
class Answer:
    """What one tab knows of one answer."""

    generation: str
    text: str = ""
    state: str = "queued"
    done: Frame | None = None


@dataclass(slots=True)
class Tab:
    """One browser tab: a socket to one of the living web processes, reopened when it is lost."""

    stack: Stack
    cookie: str
    answers: dict[str, Answer] = field(default_factory=dict)
    outbox: dict[str, Frame] = field(default_factory=dict)
    acknowledged: dict[str, Frame] = field(default_factory=dict)
    sent: dict[str, str] = field(default_factory=dict)
    close_codes: list[int] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    _wire: Wire | None = None
    _task: asyncio.Task[None] | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def send(self, text: str, **fields: Any) -> str:
        """Puts a message into the outbox and on the wire; its id."""
        name = str(uuid4())
        self.sent[name] = text
        self.outbox[name] = {"type": "send", "client_message_id": name, "text": text, **fields}
        await self.say(self.outbox[name])
        return name

    async def stop_answer(self, generation: str) -> None:
        await self.say({"type": "stop", "generation": generation})

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Waits for a condition on what this tab knows."""
        async with asyncio.timeout(PATIENCE_S):
            while not (found := condition()):
                self._changed.clear()
                await self._changed.wait()
        return found

    async def connected(self) -> None:
        await self.until(lambda: self._wire)

    async def reconnect(self) -> None:
        """Loses the socket and comes back to the newest process."""
        await self.connected()
        lost, self._wire = self._wire, None
        lost.vanish()  # type: ignore[union-attr]
        await self.connected()

    async def accepted(self, name: str) -> Frame:
        frame: Frame = await self.until(lambda: self.acknowledged.get(name))
        return frame

    async def ended(self, name: str) -> Answer:
        """The answer to a message, when it has ended."""
        answer = self.answers[(await self.accepted(name))["generation"]]
        await self.until(lambda: answer.done)
        return answer

    async def has_text(self, name: str, chars: int = 1) -> Answer:
        answer = self.answers[(await self.accepted(name))["generation"]]
        await self.until(lambda: len(answer.text) >= chars)
        return answer

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._wire is not None:
            self._wire.vanish()

    async def _run(self) -> None:
        while True:
            try:
                await self._connect()
                while True:
                    self._take(json.loads(await self._wire.receive()))  # type: ignore[union-attr]
                    self._changed.set()
            except Closed as closed:
                self.close_codes.append(closed.code)
            except (ConnectionError, Refused):
                pass  # nobody there yet
            lost, self._wire = self._wire, None
            if lost is not None:
                lost.vanish()
            self._changed.set()
            await asyncio.sleep(0.05)

    async def _connect(self) -> None:
        web = next((web for web in reversed(self.stack.webs) if web.process.poll() is None), None)
        if web is None:
            raise ConnectionError
        self._wire = await Wire.open(
            web.port, "/ws/chat", {"Origin": self.stack.origin, "Cookie": self.cookie}
        )
        self._changed.set()
        await self.say({"type": "hello", "protocol": 1})
        for answer in self.answers.values():
            if answer.done is None:
                await self.say({"type": "attach", "generation": answer.generation})
        for frame in self.outbox.values():
            await self.say(frame)

    async def say(self, frame: Frame) -> None:
        if self._wire is not None:
            try:
                await self._wire.send(json.dumps(frame))
            except ConnectionError:
                return  # the reader notices too

    def _take(self, frame: Frame) -> None:
        kind = frame["type"]
        if kind == "accepted":
            self.outbox.pop(frame["client_message_id"], None)
            self.acknowledged[frame["client_message_id"]] = frame
            self.answers.setdefault(frame["generation"], Answer(frame["generation"]))
        elif kind == "error":
            self.troubles.append(frame["code"])
        elif frame.get("generation") in self.answers:
            self._follow(self.answers[frame["generation"]], frame)

    def _follow(self, answer: Answer, frame: Frame) -> None:
        if frame["type"] == "snapshot":  # everything anew, also for a message that was sent again
            answer.text, answer.done = frame["text"], None
        elif answer.done is not None:
            self.troubles.append(f"{frame['type']} after the end")
        elif frame["type"] == "delta":
            if frame["offset"] != len(answer.text.encode("utf-16-le")) // 2:
                self.troubles.append("a delta does not fit")
            answer.text += frame["text"]
        elif frame["type"] == "done":
            answer.done, answer.state = frame, frame["state"]


def check(stack: Stack, *tabs: Tab) -> None:
    """Fails for anything lost, repeated, unclear or different between what tabs saw and what is stored."""
    for tab in tabs:
        assert tab.troubles == []
        assert set(tab.acknowledged) == set(tab.sent), "a message was never acknowledged"
        for name, frame in tab.acknowledged.items():
            rows = stack.sql("SELECT id, text FROM chat_message WHERE client_message_id = %s", name)
            assert [(str(pk), text) for pk, text in rows] == [(frame["user_message"], tab.sent[name])]
            answers = stack.sql(
                "SELECT m.text, m.state, g.state FROM chat_message m JOIN chat_generation g ON g.message_id = m.id"
                " WHERE m.parent_id = %s", frame["user_message"],
            )  # fmt: skip
            assert len(answers) == 1, "a question has not exactly one answer"
            text, of_message, state = answers[0]
            seen = tab.answers[frame["generation"]]
            assert state == of_message == seen.state
            assert state in FINAL
            assert seen.text == text, "what was seen is not what is stored"
