"""The numbers of servers, for Prometheus: whose, and how often a conductor is asked."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from common.errors import Unavailable
from common.messages.guests import GuestOwner
from common.metrics import table
from compute.hypervisor.port import GuestUse
from compute.observed.guest_metrics import GuestMetrics

USE = GuestUse(100, True, 2, 0.5, 1024, 512, 1, 2, 3, 4, 60)
OTHER = GuestUse(101, True, 1, 0.1, 1, 1, 1, 1, 1, 1, 1)
OWNERS = [GuestOwner("c1", 100, "server-1", "project-1")]


class Conductor:
    """Counts what it is asked."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.count = 0
        self.silent = False

    def __call__(self) -> Sequence[GuestOwner]:
        self.count += 1
        self.asked.release()
        if self.silent:
            raise Unavailable("No conductor answers.")
        return OWNERS


class Time:
    """A clock that is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def conductor() -> Conductor:
    return Conductor()


@pytest.fixture
def at() -> Time:
    return Time()


@pytest.fixture
def metrics(conductor: Conductor, at: Time) -> GuestMetrics:
    made = GuestMetrics(conductor, at)
    made.update("c1", (USE, OTHER))
    made.update("c2", (USE,))
    return made


def lines() -> dict[str, float]:
    """Return the samples of all metrics of guests, as Prometheus reads them."""
    found = {}
    for one in table.ALL:
        if one.name.startswith("micronova_guest_"):
            family = one.family()  # type: ignore[attr-defined]
            for sample in family.samples if family is not None else ():
                found[f"{sample.name} {' '.join(sample.labels.values())}"] = sample.value
    return found


def test_each_servers_numbers_have_its_id_and_projects(metrics: GuestMetrics) -> None:
    metrics.refresh()
    assert lines() == {
        "micronova_guest_running project-1 server-1": 1,
        "micronova_guest_cpus project-1 server-1 total": 2,
        "micronova_guest_cpus project-1 server-1 used": 0.5,
        "micronova_guest_memory_bytes project-1 server-1 total": 1024,
        "micronova_guest_memory_bytes project-1 server-1 used": 512,
        "micronova_guest_network_bytes project-1 server-1 in": 1,
        "micronova_guest_network_bytes project-1 server-1 out": 2,
        "micronova_guest_disk_bytes project-1 server-1 read": 3,
        "micronova_guest_disk_bytes project-1 server-1 written": 4,
        "micronova_guest_uptime_seconds project-1 server-1": 60,
    }
    metrics.update("c1", ())  # the cluster doesn't answer
    assert lines() == {}


def test_a_conductor_is_asked_once_a_minute_and_only_by_scrapes(
    metrics: GuestMetrics, conductor: Conductor, at: Time
) -> None:
    metrics.update("c1", (USE,))
    assert conductor.count == 0
    lines()
    assert conductor.asked.acquire(timeout=60)
    metrics.refresh()
    count = conductor.count
    for _ in range(5):
        lines()
    assert conductor.count == count
    at.now += 61
    lines()
    assert conductor.asked.acquire(timeout=60)


def test_a_silent_conductor_leaves_what_was_known(
    metrics: GuestMetrics, conductor: Conductor
) -> None:
    metrics.refresh()
    conductor.silent = True
    metrics.refresh()
    assert len(lines()) == 10
