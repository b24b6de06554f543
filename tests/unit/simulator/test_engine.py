"""Time, work and locks, without a network."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest

from simulator.engine import Acquire, Clock, Engine, Lock, Process, Release, Sleep, Work
from simulator.errors import Interrupted, PveError


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine(Clock(10_000))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def turn() -> AbstractContextManager[object]:
    return threading.RLock()


def process(work: Work, turn: AbstractContextManager[object]) -> Process:
    return Process(work, lambda: turn)


def holding(lock: Lock, seconds: float, timeout: float, shared: bool = False) -> Work:
    got = yield Acquire(lock, timeout, shared)
    if got:
        yield Sleep(seconds)
        yield Release(lock)
    return got


def test_work_that_never_waits_ends_in_the_callers_thread(
    engine: Engine, turn: AbstractContextManager[object]
) -> None:
    def work() -> Work:
        yield Sleep(0)
        return threading.current_thread().name

    assert engine.run(process(work(), turn)) == threading.current_thread().name


def test_a_lock_is_had_in_order_or_not_in_time(
    engine: Engine, turn: AbstractContextManager[object]
) -> None:
    lock = Lock("one")
    first = engine.spawn(process(holding(lock, 100, 1000), turn))
    second = engine.spawn(process(holding(lock, 1, 5), turn))
    third = engine.spawn(process(holding(lock, 1, 5000), turn))
    for one in (first, second, third):
        assert one.finished.wait(60)
    assert (first.result, second.result, third.result) == (True, False, True)
    assert not lock.holders
    assert not lock.waiters


def test_readers_share_and_a_writer_waits(
    engine: Engine, turn: AbstractContextManager[object]
) -> None:
    lock = Lock("one")
    readers = [engine.spawn(process(holding(lock, 50, 1, True), turn)) for _n in range(3)]
    writer = engine.spawn(process(holding(lock, 1, 1), turn))
    late_reader = engine.spawn(process(holding(lock, 1, 500, True), turn))
    for one in (*readers, writer, late_reader):
        assert one.finished.wait(60)
    assert [one.result for one in readers] == [True] * 3
    assert writer.result is False
    assert late_reader.result is True


def test_interrupted_work_may_clean_up_and_killed_work_may_not(
    engine: Engine, turn: AbstractContextManager[object]
) -> None:
    cleaned: list[str] = []
    lock = Lock("one")

    def work(name: str) -> Work:
        yield Acquire(lock, 1, True)
        try:
            yield Sleep(1_000_000)
        except PveError:
            cleaned.append(name)
            raise

    stopped, killed = process(work("stopped"), turn), process(work("killed"), turn)
    for one in (stopped, killed):
        engine.spawn(one)
    while len(lock.holders) < 2:
        threading.Event().wait(0.001)
    with turn:
        engine.interrupt(stopped)
        engine.kill(killed)
    assert cleaned == ["stopped"]
    assert isinstance(stopped.error, Interrupted)
    assert killed.killed
    assert not lock.holders


def test_a_change_of_speed_reaches_what_sleeps(turn: AbstractContextManager[object]) -> None:
    engine = Engine(Clock(0.001))
    engine.start()
    asleep = engine.spawn(process(holding(Lock("one"), 100, 1), turn))
    assert not asleep.finished.wait(0.05)
    engine.set_speed(100_000)
    assert asleep.finished.wait(60)
    engine.stop()
