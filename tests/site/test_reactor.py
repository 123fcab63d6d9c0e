"""Writing first, and watching only what the kernel did not take: everything arrives, in order, whoever reads slowly.

In a process of its own, because a process has one reactor.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.patience import PATIENCE_S

# Writes `sizes` one after the other in one turn of the loop, then closes; says what came and how often it was watched.
TALK = """
import json, sys
from chatsite.reactor import reactor
from twisted.internet.protocol import ClientFactory, Factory, Protocol

sizes, slow, watched, got = json.loads(sys.argv[1]), json.loads(sys.argv[2]), [], bytearray()
sent = b"".join(bytes([65 + number]) * size for number, size in enumerate(sizes))
watch = reactor.loop.add_writer
reactor.loop.add_writer = lambda fd, *args: (watched.append(fd), watch(fd, *args))

class Writer(Protocol):
    def connectionMade(self):
        watched.clear()  # a client is watched until it is connected
        for number, size in enumerate(sizes):
            self.transport.write(bytes([65 + number]) * size)
        self.transport.loseConnection()

class Reader(Protocol):
    def connectionMade(self):
        if slow:
            self.transport.pauseProducing()
            reactor.callLater(0.2, self.transport.resumeProducing)
    def dataReceived(self, data):
        got.extend(data)
    def connectionLost(self, reason):
        print(json.dumps([len(got), bytes(got) == sent, len(watched)]))
        reactor.stop()

port = reactor.listenTCP(0, Factory.forProtocol(Writer), interface="127.0.0.1")
reactor.connectTCP("127.0.0.1", port.getHost().port, ClientFactory.forProtocol(Reader))
reactor.run()
"""


def talked(sizes: list[int], *, slow: bool) -> tuple[int, bool, int]:
    """(bytes that came, whether they are those that were written, how often a socket was watched for writing)"""
    argv = [sys.executable, "-c", TALK, json.dumps(sizes), json.dumps(slow)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    num, is_same, num_watched = json.loads(done.stdout)
    return num, is_same, num_watched


@pytest.mark.parametrize("slow", [False, True])
def test_small_messages_leave_without_being_watched(slow: bool) -> None:
    assert talked([10, 20, 30], slow=slow) == (60, True, 0)


def test_what_the_kernel_does_not_take_at_once_follows_in_order() -> None:
    sizes = [10, 30_000_000, 20]
    num, is_same, num_watched = talked(sizes, slow=True)
    assert (num, is_same) == (sum(sizes), True) and num_watched > 0
