"""The storage queue's width against storages of several kinds, in a made-up time."""

from __future__ import annotations

import dataclasses
import heapq
import threading

import pytest

from common.messages.queues import STORAGE, Queue
from compute.hypervisor.proxmox.cluster.storage_queue import LOCK_WAIT_SECONDS, StorageQueue, Width
from tests.unit.compute.fakes import FakeWork, a_build


def run(width: Width, count: int, locked: float, copying: float) -> tuple[float, int, int]:
    """So many operations: each holds the lock, then copies. Seconds, timeouts, widest.

    A refused one comes back at the end of the line, as in the driver.
    """
    lock_free, now = 0.0, 0.0
    waiting, running = count, list[tuple[float, int, float, bool]]()
    timeouts, widest = 0, width.limit
    while waiting or running:
        while waiting and len(running) < width.limit:
            waiting -= 1
            turn = max(now, lock_free)
            if turn - now > LOCK_WAIT_SECONDS:
                heapq.heappush(running, (now + LOCK_WAIT_SECONDS, width.round, now, False))
            else:
                lock_free = turn + locked
                heapq.heappush(running, (lock_free + copying, width.round, now, True))
        now, began_in, began, ok = heapq.heappop(running)
        if ok:
            width.ended(began_in, "clone", now - began, crowded=waiting > 0)
        else:
            timeouts += 1
            waiting += 1
            width.refused()
        widest = max(widest, width.limit)
    return now, timeouts, widest


@pytest.mark.parametrize("locked", [0.05, 0.25, 1.0, 2.5])
def test_a_storage_whose_lock_is_all_its_work_is_kept_busy_without_a_timeout(
    locked: float,
) -> None:
    seconds, timeouts, _ = run(Width(2, 32), 50, locked, 0.1)
    assert timeouts == 0
    assert seconds <= 1.1 * (50 * locked + 0.1) + 1


@pytest.mark.parametrize("width", [2, 4])
def test_work_beside_the_lock_is_done_side_by_side(width: int) -> None:
    best, _, _ = run(Width(32, 32), 200, 0.05, 4.0)
    seconds, timeouts, widest = run(Width(width, 32), 200, 0.05, 4.0)
    assert timeouts == 0
    assert widest > 16
    assert seconds < 2 * best


def test_a_storage_that_is_far_too_slow_gets_one_at_a_time() -> None:
    width = Width(4, 32)
    _, timeouts, _ = run(width, 30, 6.0, 0.0)
    assert width.limit <= 2
    assert timeouts <= 6


def test_a_refusal_halves_once_for_all_that_began_before_it() -> None:
    width = Width(16, 32)
    for _ in range(16):
        width.refused()
    assert width.limit == 8
    width.ended(width.round, "clone", 1.0, crowded=True)
    width.refused()
    assert width.limit == 4


def test_it_grows_only_while_somebody_waits_and_never_beyond_its_bound() -> None:
    width = Width(2, 5)
    for _ in range(9):
        width.ended(width.round, "clone", 1.0, crowded=False)
    assert width.limit == 2
    for _ in range(99):
        width.ended(width.round, "clone", 1.0, crowded=True)
    assert width.limit == 5


def test_what_began_before_a_change_says_nothing_of_it() -> None:
    width = Width(2, 32)
    first = width.round
    for _ in range(2):
        width.ended(first, "clone", 1.0, crowded=True)
    assert width.limit == 4
    for _ in range(20):
        width.ended(first, "clone", 1.0, crowded=True)
    assert width.limit == 4


def test_a_width_that_grew_lets_in_who_waits() -> None:
    queue = StorageQueue(1, 1, most_slots=2)
    key = ("pve1", "local")
    with queue.slot(FakeWork(), key, "clone"):
        assert queue.limit(key) == 1
    queue.refused(key)
    assert queue.limit(key) == 1
    fixed = StorageQueue(3, 1)
    assert fixed.limit(key) == 3


def test_it_says_which_nodes_use_it_and_how_long_they_wait() -> None:
    times = iter([0.0, 1.0, 2.0])
    queue = StorageQueue(1, 1, timer=lambda: next(times, 9.0))
    waits, go = threading.Event(), threading.Event()

    class Looks(FakeWork):
        def check(self) -> None:
            waits.set()
            assert go.wait(60)

    other = dataclasses.replace(a_build().placed, node="pve2", host="pve2")

    def use() -> None:
        with queue.slot(Looks(a_build(placed=other)), (None, "nfs")):
            pass

    second = threading.Thread(target=use)
    with queue.slot(FakeWork(), (None, "nfs")):
        second.start()
        assert waits.wait(60)
        nfs = Queue(STORAGE, "nfs", 1, shared=True)
        waiting = dataclasses.replace(nfs, waiting=1, oldest_waiting_seconds=7.0)
        assert queue.queues() == {
            "pve1": (dataclasses.replace(nfs, running=1),),
            "pve2": (waiting,),
        }
    go.set()
    second.join(60)
    with queue.slot(FakeWork(), ("pve3", "local")):
        (local,) = queue.queues()["pve3"]
        assert (local.name, local.running, local.shared) == ("local", 1, False)
    assert queue.queues() == {}
