"""How often a hypervisor is asked for measurements, however many look."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from common import clock
from common.errors import Unavailable
from common.messages.measurements import Measured, Period
from common.messages.questions import Measure
from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError
from compute.observed import measurements
from compute.observed.measurements import Measurements


class Cluster:
    """Counts what it is asked."""

    cluster = "c1"

    def __init__(self) -> None:
        self.asked: list[Measure] = []
        self.fails = False
        self.begun = threading.Semaphore(0)
        self.open = threading.Event()
        self.open.set()

    def measure(self, wanted: Measure) -> Measured:
        self.asked.append(wanted)
        self.begun.release()
        assert self.open.wait(60)
        if self.fails:
            raise HypervisorError(Category.NODE_UNHEALTHY, "no route to host")
        return Measured(wanted.period, 60, clock.utcnow(), (len(self.asked),))


class Time:
    """A clock that is set."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def at() -> Time:
    return Time()


@pytest.fixture
def known(at: Time) -> Measurements:
    return Measurements(at)


@pytest.fixture
def cluster() -> Any:
    return Cluster()


def vm(vmid: int = 100, period: Period = Period.HOUR, **values: Any) -> Measure:
    return Measure(values.pop("node", "pve1"), period, vmid=vmid, **values)


def test_any_number_of_askers_is_one_call_a_minute(
    known: Measurements, cluster: Any, at: Time
) -> None:
    cluster.open.clear()
    with ThreadPoolExecutor(4) as threads:
        answers = [threads.submit(known.read, cluster, vm()) for _ in range(40)]
        assert cluster.begun.acquire(timeout=60)
        cluster.open.set()
        assert {one.result().times for one in answers} == {(1,)}
    at.now += 59
    assert known.read(cluster, vm()).times == (1,)
    at.now += 2
    assert known.read(cluster, vm()).times == (2,)
    assert len(cluster.asked) == 2


def test_each_server_node_and_storage_counts_by_itself(known: Measurements, cluster: Any) -> None:
    different = (
        *(vm(), vm(101), Measure("pve1", Period.HOUR), Measure("pve2", Period.HOUR)),
        *(Measure("pve1", Period.HOUR, storage="a"), Measure("pve1", Period.HOUR, storage="b")),
    )
    for _ in range(3):
        for one in different:
            known.read(cluster, one)
    assert cluster.asked == list(different)
    known.read(cluster, vm(node="pve2"))  # it has moved
    assert len(cluster.asked) == len(different)


def test_other_periods_are_read_once_and_less_often(
    known: Measurements, cluster: Any, at: Time
) -> None:
    for _ in range(180):
        for period in Period:
            known.read(cluster, vm(period=period))
        at.now += 60
    times = {period: [one.period for one in cluster.asked].count(period) for period in Period}
    assert 90 <= times.pop(Period.HOUR) <= 180
    assert times == {Period.DAY: 18, Period.WEEK: 3, Period.MONTH: 2, Period.YEAR: 2}


@pytest.mark.parametrize("looks_a_minute", [1, 12])
def test_all_periods_together_are_a_call_a_minute_and_one_more_of_each(
    known: Measurements, cluster: Any, at: Time, looks_a_minute: int
) -> None:
    began: list[float] = []
    for _ in range(180 * looks_a_minute):
        for period in Period:
            before = len(cluster.asked)
            known.read(cluster, vm(period=period))
            began += [at.now] * (len(cluster.asked) - before)
        at.now += 60 / looks_a_minute
    for first, one in enumerate(began):
        for last in range(first, len(began)):
            minutes = (began[last] - one) / 60
            assert last - first + 1 <= minutes + len(Period)


def test_a_stale_answer_will_do_within_a_minute_of_another_call(
    known: Measurements, cluster: Any, at: Time
) -> None:
    first = known.read(cluster, vm())
    at.now += 61
    known.read(cluster, vm(period=Period.DAY))
    at.now += 30
    assert known.read(cluster, vm()) == first
    at.now += 31
    assert known.read(cluster, vm()) != first


def test_a_failure_counts_as_a_call(known: Measurements, cluster: Any, at: Time) -> None:
    cluster.fails = True
    for _ in range(5):
        with pytest.raises(HypervisorError, match="no route to host"):
            known.read(cluster, vm())
    assert len(cluster.asked) == 1
    cluster.fails = False
    at.now += 61
    assert known.read(cluster, vm()).times == (2,)


def test_a_failure_of_all_periods_is_over_within_a_minute(
    known: Measurements, cluster: Any, at: Time
) -> None:
    cluster.fails = True
    for period in Period:
        with pytest.raises(HypervisorError):
            known.read(cluster, vm(period=period))
    cluster.fails = False
    at.now += 61
    assert known.read(cluster, vm()).period is Period.HOUR


def test_a_vmids_next_owner_gets_nothing_of_the_former(known: Measurements, cluster: Any) -> None:
    former = clock.after(-3600)
    known.read(cluster, vm(since=former))
    assert known.read(cluster, vm(since=clock.utcnow())).times == (2,)
    assert known.read(cluster, vm(since=former)).times == (3,)


def test_threads_are_left_for_commands(cluster: Any) -> None:
    known = Measurements(thread_seconds=0.01)
    cluster.open.clear()
    with ThreadPoolExecutor(measurements.AT_ONCE) as threads:
        slow = [threads.submit(known.read, cluster, vm(n)) for n in range(measurements.AT_ONCE)]
        for _ in slow:
            assert cluster.begun.acquire(timeout=60)
        with pytest.raises(Unavailable, match="Too many"):
            known.read(cluster, vm(99))
        cluster.open.set()
        assert [one.result().period for one in slow] == [Period.HOUR] * measurements.AT_ONCE
    assert known.read(cluster, vm(99)).period is Period.HOUR


def test_memory_is_bounded(cluster: Any, at: Time) -> None:
    known = Measurements(at, most_answers=3)
    for vmid in (1, 2, 3, 1, 4):
        known.read(cluster, vm(vmid))
    assert [one.vmid for one in cluster.asked] == [1, 2, 3, 4]
    known.read(cluster, vm(1))
    known.read(cluster, vm(2))
    assert [one.vmid for one in cluster.asked][4:] == [2]
