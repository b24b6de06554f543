"""Groups over clusters of Proxmox VE: each gets its share, also once it is back."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from common.messages.scheduling import RequestSpec
from tests.functional.conductor.test_lost_members import Site

CLUSTERS = {"pve1": "sim1", "pve2": "sim2"}


class Clustered(Site):
    """Two clusters with a host each."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.world.clusters = dict(CLUSTERS)
        self.world.beat()
        self.world.scheduler.hosts_for = self._in_cluster

    @staticmethod
    def _in_cluster(request: RequestSpec) -> list[str]:
        return [host for host, name in CLUSTERS.items() if request.cluster in (None, name)]

    def by_cluster(self) -> Mapping[str, int]:
        """How many servers work in each cluster."""
        working = [one for one in self.servers().values() if one.vm_state == "active"]
        return collections.Counter(one.cluster for one in working)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Clustered]:
    made = Clustered(tmp_path)
    yield made
    made.close()


def test_members_are_spread_over_clusters(site: Clustered) -> None:
    group = site.create(4, clusters="sim1, sim2")
    site.settled(group, 4)
    assert site.by_cluster() == {"sim1": 2, "sim2": 2}
    # The crowded one loses a member first.
    site.resize(group, 5)
    site.settled(group, 5)
    site.resize(group, 4)
    site.settled(group, 4)
    assert site.by_cluster() == {"sim1": 2, "sim2": 2}


def test_without_the_option_schedulers_choose(site: Clustered) -> None:
    site.settled(site.create(2), 2)
    assert {one.cluster for one in site.world.scheduler.asked} == {None}


def test_members_return_to_a_cluster_that_is_back(site: Clustered) -> None:
    group = site.create(4, clusters="sim1,sim2")
    site.settled(group, 4)
    lost = {uuid for uuid, one in site.servers().items() if one.host == "pve2"}
    site.lose("pve2")
    site.mark("pve2")
    site.world._wait(
        lambda: (
            [one.server_uuid in lost for one in site.members()],
            site.group(group).status,
            site.open_about(group),
        ),
        lambda found: found == ([False] * 4, "ACTIVE", []),
    )
    assert {site.world.row(one.server_uuid).cluster for one in site.members()} == {"sim1"}
    site.world.beat()
    site.mark("pve2", down=False)
    site.hasten()
    site.world._wait(
        lambda: (site.by_cluster(), len(site.servers())),
        lambda found: found == ({"sim1": 2, "sim2": 2}, 4),
    )
    site.settled(group, 4)
