"""Servers that wait for room start in the same order although all of their cloud is killed."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import openstack.exceptions
import pytest
import requests

from tests.functional.client import assert_nothing_is_left
from tests.functional.distributed import NODES, DistributedCloud, distributed_cloud
from tests.functional.waiting import eventually

pytestmark = [pytest.mark.distributed, pytest.mark.long, pytest.mark.timeout(1800)]

WAIT_SECONDS = 240
_OUT_OF_REACH = (openstack.exceptions.SDKException, requests.RequestException)


class Queue:
    """One host with room for one server at a time, and the servers of two projects."""

    def __init__(self, cloud: DistributedCloud) -> None:
        self.cloud = cloud
        self.projects = [cloud.connection("micronova-demo"), cloud.connection("micronova-admin")]
        self.admin = self.projects[1].compute
        for one in self.admin.services(binary="nova-compute"):
            if one.host != NODES[0]:
                self.admin.disable_service(one, one.host, "nova-compute")
        kinds = self.admin.get("/waiting/hosts").json()["kinds"]
        most = max(one["capacity"]["MEMORY_MB"] for one in kinds)
        self.flavor = self.admin.create_flavor(name="whole", ram=128, vcpus=1, disk=1)
        self.admin.create_flavor_extra_specs(
            self.flavor, {"resources:MEMORY_MB": str(most * 2 // 3)}
        )
        self.image = next(iter(self.projects[0].image.images(name="cirros")))

    def create(self, project: int, name: str) -> Any:
        made = self.projects[project].compute.create_server(
            name=name,
            flavor_id=self.flavor.id,
            image_id=self.image.id,
            networks="none",
            scheduler_hints={"micronova:wait": "3600"},
        )
        eventually(
            lambda: made.id in self.waiting() or self.status(made) == "ACTIVE", WAIT_SECONDS
        )
        return made

    def waiting(self) -> list[str]:
        """Those that wait, in their order; empty while nobody answers."""
        try:
            found = self.admin.get("/waiting").json()
        except _OUT_OF_REACH:
            return []
        return [one["server_id"] for one in found.get("waiting", ())]

    def status(self, server: Any) -> str:
        try:
            return str(self.admin.get_server(server.id).status)
        except _OUT_OF_REACH:
            return ""

    def end(self, server: Any) -> None:
        eventually(lambda: self._delete(server), WAIT_SECONDS)

    def _delete(self, server: Any) -> bool:
        try:
            self.admin.delete_server(server.id)
        except _OUT_OF_REACH:
            return False
        return True

    def kill_everything(self) -> None:
        names = list(self.cloud.children)
        for name in names:
            self.cloud.kill(name, signal.SIGKILL)
        for name in names:
            self.cloud.restart(name)

    def is_next(self, server: Any, *later: Any) -> None:
        """Wait until it has the room; the later ones still wait, in this order."""
        eventually(lambda: self.status(server) == "ACTIVE", WAIT_SECONDS)
        assert eventually(self.waiting) == [one.id for one in later] if later else True


def test_the_order_of_start_survives_the_death_of_everything(tmp_path: Path) -> None:
    with distributed_cloud(tmp_path, compact=True) as cloud:
        queue = Queue(cloud)
        first = queue.create(0, "first")
        queue.is_next(first)
        mine, second, theirs = (
            queue.create(0, "mine"),
            queue.create(0, "second"),
            queue.create(1, "theirs"),
        )
        order = queue.waiting()
        assert order == [mine.id, second.id, theirs.id]
        queue.kill_everything()
        assert eventually(queue.waiting, WAIT_SECONDS) == order
        # A project's first comes before another one's second, as it did before.
        queue.end(first)
        queue.is_next(mine, second, theirs)
        queue.kill_everything()
        queue.end(mine)
        queue.is_next(theirs, second)
        queue.end(theirs)
        queue.is_next(second)
        queue.end(second)
        eventually(lambda: not queue.status(second), WAIT_SECONDS)
        assert_nothing_is_left(cloud)
