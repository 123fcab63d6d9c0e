"""The event log of one generation: what happened, numbered, so that anybody can read it again from any point.

Knows order, numbers and size. Does not know who reads, nor what made the events.
"""

from __future__ import annotations

from inference.proto import engine_pb2 as pb


class EventLog:
    """Append-only; seq 1, 2, 3 ... without gaps; the last event is `done`."""

    def __init__(self, generation_id: str) -> None:
        self.generation_id = generation_id
        self.num_bytes = 0
        self.is_done = False
        self._events: list[pb.Event] = []

    @property
    def last_seq(self) -> int:
        return len(self._events)

    def append_delta(self, delta: pb.Delta) -> None:
        self._append(pb.Event(generation_id=self.generation_id, seq=self.last_seq + 1, delta=delta))

    def append_done(self, done: pb.Done) -> None:
        self._append(pb.Event(generation_id=self.generation_id, seq=self.last_seq + 1, done=done))
        self.is_done = True

    def after(self, seq: int, max_bytes: int) -> list[pb.Event]:
        """Events behind `seq`, at least one where there is one, until `max_bytes` are reached."""
        events: list[pb.Event] = []
        for event in self._events[seq:]:
            if events and max_bytes <= 0:
                break
            events.append(event)
            max_bytes -= event.ByteSize()
        return events

    def _append(self, event: pb.Event) -> None:
        assert not self.is_done, "nothing follows done"
        self._events.append(event)
        self.num_bytes += event.ByteSize()
