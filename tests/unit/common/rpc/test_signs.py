"""Signs of calls that are being answered."""

from __future__ import annotations

import threading
import time

from common.rpc.deadlines import Deadline, Wait
from common.rpc.signs import Signs


class Incoming:
    """A message whose caller counts signs."""

    def __init__(self) -> None:
        self.signed = threading.Event()
        self.count = 0

    def heartbeat(self) -> None:
        self.count += 1
        self.signed.set()


def test_a_call_that_takes_long_gives_signs_and_may_be_committed() -> None:
    incoming, deadline = Incoming(), Deadline(Wait(1000.0, 0.1), time.monotonic())
    deadline.until = before = time.monotonic() + 100
    with Signs(look_seconds=0.001).sent_for(incoming, deadline):
        assert incoming.signed.wait(60)
    assert deadline.until != before


def test_a_process_that_stood_still_for_too_long_gives_none() -> None:
    sending, frozen, other = Signs(look_seconds=0.001), Incoming(), Incoming()
    past = Deadline(Wait(1000.0, 0.1), time.monotonic() - 100)
    going_on = Deadline(Wait(1000.0, 0.1), time.monotonic() - 100)
    going_on.committed = True
    with sending.sent_for(frozen, past), sending.sent_for(other, going_on):
        assert other.signed.wait(60)
    assert (frozen.count, past.over()) == (0, True)


def test_a_caller_without_patience_gets_none() -> None:
    sending, incoming = Signs(), Incoming()
    with sending.sent_for(incoming, Deadline(Wait(1000.0), time.monotonic())):
        assert sending._thread is None
    with sending.sent_for(incoming, None):
        assert sending._thread is None
