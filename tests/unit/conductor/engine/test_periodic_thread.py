"""A thread that works in turns."""

from __future__ import annotations

import queue

from conductor.engine.periodic_thread import PeriodicThread


def test_it_works_when_woken_and_once_more_when_stopped() -> None:
    taken: queue.Queue[bool] = queue.Queue()

    def turn() -> float | None:
        taken.put(turns.stopped)
        return None if turns.stopped else 3600.0

    turns = PeriodicThread("test", turn)
    turns.start()
    assert taken.get(timeout=60) is False
    turns.wake()
    assert taken.get(timeout=60) is False
    turns.stop(10.0)
    assert taken.get(timeout=60) is True
    assert taken.empty()


def test_one_that_was_never_started_stops() -> None:
    PeriodicThread("test", lambda: None).stop(10.0)
