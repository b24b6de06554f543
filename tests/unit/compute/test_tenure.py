"""What a worker may do, by the leases that it was granted and its own clock."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Any

import pytest
from oslo_config import cfg

from common import rpc
from common.errors import Unavailable
from common.messages.tenures import Granted, address, unit
from compute.hypervisor.acting import acting_for
from compute.hypervisor.port import Abandoned
from compute.worker.tenure import Tenure


class Clock:
    """The machine's, which the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Site:
    """A tenure whose answers the test gives."""

    def __init__(self, await_seconds: float = 0.01, renewed_seconds: float = 0.01) -> None:
        conf = cfg.ConfigOpts()
        rpc.register(conf)
        conf([])
        conf.set_override("transport_url", "micronova-local://tenure")
        self.clock = Clock()
        self.changes: list[tuple[list[str], list[str]]] = []
        self.tenure = Tenure(
            rpc.transport(conf),
            "w1",
            [unit("c1"), unit("c2")],
            lambda: True,
            self._changed,
            self.clock,
            await_seconds=await_seconds,
            renewed_seconds=renewed_seconds,
        )

    def _changed(self, gained: Collection[str], lost: Collection[str]) -> None:
        self.changes.append((sorted(gained), sorted(lost)))

    def granted(self, number: int, *held: str, seconds: float = 30.0, **holders: str) -> None:
        self.tenure._take(Granted(number, seconds, held, holders), self.clock.now)


@pytest.fixture
def site() -> Site:
    return Site()


def test_nothing_is_written_without_a_lease(site: Site) -> None:
    with pytest.raises(Unavailable, match="cluster c1"):
        site.tenure.require("c1")
    site.granted(1, "c1")
    site.tenure.require("c1")
    with pytest.raises(Unavailable, match="cluster c2"):
        site.tenure.require("c2")


def test_a_lease_ends_here_before_it_ends_in_the_database(site: Site) -> None:
    site.granted(1, "c1")
    site.clock.now += 26
    site.tenure.require("c1")
    site.clock.now += 2
    with pytest.raises(Unavailable):
        site.tenure.require("c1")


def test_a_job_of_a_tenure_that_has_ended_writes_nothing(site: Site) -> None:
    """The worker stood still, and another one carried on; now it has the cluster again."""
    site.granted(1, "c1")
    with acting_for(address("w1", 1)):
        site.tenure.require("c1")
    site.granted(1, c1="w2")
    assert site.tenure.worker == ""
    with acting_for(address("w1", 1)), pytest.raises(Abandoned):
        site.tenure.require("c1")
    site.granted(2, "c1")
    with acting_for(address("w1", 1)), pytest.raises(Abandoned):
        site.tenure.require("c1")
    with acting_for(address("w1", 2)):
        site.tenure.require("c1")
    assert site.changes == [(["c1"], []), ([], ["c1"]), (["c1"], [])]


def test_a_write_waits_for_the_renewal_of_a_lease_that_nobody_else_took() -> None:
    """As after a time without a conductor or a message bus."""
    site = Site(renewed_seconds=30.0)
    site.granted(1, "c1")
    site.clock.now += 300
    done = threading.Event()

    def write() -> None:
        with acting_for(address("w1", 1)):
            site.tenure.require("c1")
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    assert not done.is_set()
    site.granted(1, "c1")
    thread.join(60)
    assert done.is_set()
    assert site.changes == [(["c1"], [])]


def test_who_loses_one_cluster_begins_again_with_the_others(site: Site) -> None:
    site.granted(1, "c1", "c2")
    site.granted(1, "c1", c2="w2")
    assert (site.tenure.worker, site.tenure.clusters) == ("", frozenset())
    site.granted(2, "c1", c2="w2")
    assert site.tenure.worker == address("w1", 2)
    assert site.changes == [(["c1", "c2"], []), ([], ["c1", "c2"]), (["c1"], [])]


def test_another_process_of_the_name_has_it(site: Site) -> None:
    site.granted(1, "c1")
    site.granted(0)
    assert site.tenure.worker == ""
    assert site.tenure.is_over(address("w1", 1))


def test_a_command_that_comes_before_the_answer_to_the_claim_is_taken() -> None:
    site = Site(await_seconds=30.0)
    found: list[Any] = []
    asks = threading.Thread(target=lambda: found.append(site.tenure.accepts(address("w1", 1))))
    asks.start()
    site.granted(1, "c1")
    asks.join(60)
    assert found == [True]
    assert not site.tenure.accepts("w1")
    assert not site.tenure.accepts(address("w1", 0))
    assert not site.tenure.accepts(address("w2", 1))
