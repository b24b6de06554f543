"""What administrators say of hosts, with real services: who hears of it, and what is built."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from common import ids
from common.errors import Unavailable
from tests.chaos.world import World, world
from tests.functional.scheduler.test_clusters import built, facts, refused


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path, nodes=3) as running:
        yield running


def service(host: str) -> str:
    return ids.named("service", f"nova-compute/{host}")


def trait(cloud: World, host: str) -> bool:
    return "COMPUTE_STATUS_DISABLED" in cloud.placement.traits(facts(cloud)[host]["uuid"])


def test_hosts_that_are_disabled_or_forced_down(cloud: World) -> None:
    context = cloud.context()
    cloud.client.update_service(context, service("pve1"), forced_down=True)
    cloud.client.update_service(context, service("pve2"), disabled=True)
    for number in range(3):
        assert built(cloud, f"web-{number}").host == "pve3"
    cloud.until(lambda: trait(cloud, "pve2"))
    down = built(cloud, "down", force_host="pve1")
    assert refused(cloud, down)["service_up"] == {"forced down by an administrator": ["pve1"]}
    names = (f"again-{number}" for number in itertools.count())
    cloud.client.update_service(context, service("pve1"), forced_down=False)
    # Schedulers hear of it a moment later.
    cloud.until(lambda: built(cloud, next(names), force_host="pve1").vm_state == "active")
    cloud.client.update_service(context, service("pve2"), disabled=False)
    cloud.until(lambda: not trait(cloud, "pve2"))
    cloud.until(lambda: built(cloud, next(names), force_host="pve2").vm_state == "active")


def test_a_deleted_service_whose_agent_runs_comes_back(cloud: World) -> None:
    before = facts(cloud)["pve2"]["uuid"]
    cloud.client.delete_service(cloud.context(), service("pve2"))
    cloud.until(lambda: "pve2" in facts(cloud))

    def offered() -> bool:
        try:
            return before in cloud.placement.candidates({"VCPU": 1}).uuids
        except Unavailable:
            return False

    cloud.until(offered)
    assert built(cloud, "web", force_host="pve2").host == "pve2"
