"""What runs and waits, counted by host."""

from __future__ import annotations

import dataclasses

from common import codec
from common.messages.queues import OPERATIONS, STORAGE, Queue, Queues
from compute.queues import Entry, counted, gathered

IDLE = Queue(OPERATIONS, OPERATIONS, 8, shared=True)
LOCAL = Queue(STORAGE, "local", 2, shared=False, running=1)


def test_entries_count_where_they_are() -> None:
    entries = [Entry("a", None), Entry("b", 1.04), Entry("a", 2.0), Entry("a", 7.21)]
    found = counted(entries, IDLE)
    assert found == {
        "a": dataclasses.replace(IDLE, running=1, waiting=2, oldest_waiting_seconds=7.2),
        "b": dataclasses.replace(IDLE, waiting=1, oldest_waiting_seconds=1.0),
    }


def test_operations_come_before_storages_on_every_host() -> None:
    working = dataclasses.replace(IDLE, running=1)
    found = gathered(IDLE, {"a": working}, [{"a": (LOCAL,), "b": (LOCAL,)}, {}])
    assert found == Queues((IDLE,), {"a": (working, LOCAL), "b": (IDLE, LOCAL)})
    assert found.of(["b", "c"]) == Queues((IDLE,), {"b": (IDLE, LOCAL)})
    assert found.of_host("c") == (IDLE,)
    assert codec.load(Queues, codec.loads(codec.dumps(found))) == found
