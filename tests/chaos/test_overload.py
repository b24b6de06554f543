"""Overload is a fault too: work may wait, signs of life and leases may not.

(Measured elsewhere: in such a burst a control plane took its own compute service for dead, and 89
of 300 servers ended in ERROR on a nearly empty cloud.)
"""

from __future__ import annotations

import collections
import concurrent.futures
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from conductor.store.hosts import registry
from db import schema
from tests.chaos.stage import Plan, Stage, stage
from tests.fixtures import null

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(2400), pytest.mark.long]

CLIENTS = 8
DOWN_SECONDS = 10
"""A sixth of the default: who is silent for so long counts as down."""


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Stage]:
    """One conductor, one scheduler, one worker that carries eight hosts without a hypervisor."""
    plan = Plan(
        conductors=1,
        schedulers=1,
        driver=null.DRIVER,
        options={"null": {"hosts": "8"}, "rpc": {"rpc_timeout_seconds": "30"}},
    )
    with stage(tmp_path / "stage", plan) as running:
        yield running


class Watch:
    """Looks again and again which services count as down."""

    def __init__(self, cloud: Stage) -> None:
        self._cloud = cloud
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.down: collections.Counter[str] = collections.Counter()
        self.looks = 0

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        binaries = (registry.COMPUTE, "nova-conductor", "nova-scheduler")
        while not self._over.wait(0.2):
            with self._cloud.engine.connect() as connection:
                for binary in binaries:
                    # Conductors and schedulers give a sign every ten seconds.
                    seconds = DOWN_SECONDS if binary == registry.COMPUTE else 3 * DOWN_SECONDS
                    self.down.update(registry.silent(connection, binary, seconds))
            self.looks += 1


@pytest.mark.parametrize("servers", [60, 300])
def test_a_burst_of_creates_ends_with_all_of_them_active(cloud: Stage, servers: int) -> None:
    cloud.until(lambda: len(cloud.rows(sa.select(schema.services.c.id))) == 10)
    with Watch(cloud) as watch, concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(cloud.create, (f"burst-{number}" for number in range(servers))))
        states = sa.select(schema.servers.c.vm_state)
        cloud.until(
            lambda: (
                len(found := cloud.rows(states)) == servers
                and all(row.vm_state != "building" for row in found)
            ),
            600,
        )
    assert collections.Counter(row.vm_state for row in cloud.rows(states)) == {"active": servers}
    assert watch.looks
    assert watch.down == {}
    # No lease ran out: nothing was begun again, by anybody.
    attempts = cloud.rows(sa.select(schema.operations.c.attempt))
    assert {row.attempt for row in attempts} == {1}
    assert "Taking over operation" not in cloud.log("conductor-1")
    assert cloud.rows(sa.select(schema.faults)) == []
