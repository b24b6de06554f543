"""A group of fifty servers: its cloud's processes are killed one by one, and all at once, and a
node of its members is lost for good."""

from __future__ import annotations

import collections
import contextlib
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openstack.exceptions
import pytest
import requests
import sqlalchemy as sa

from db import schema
from tests.functional.client import assert_nothing_is_left
from tests.functional.cloud import eventually
from tests.functional.distributed import DistributedCloud, distributed_cloud

pytestmark = [pytest.mark.distributed, pytest.mark.long, pytest.mark.timeout(3600)]

SIZE, SMALLER = 50, 30
WAIT_SECONDS = 600
_OUT_OF_REACH = (openstack.exceptions.SDKException, requests.RequestException)


class Fifty:
    """The group, as its user and as its rows."""

    def __init__(self, cloud: DistributedCloud) -> None:
        self.cloud = cloud
        self.groups = cloud.connection().clustering
        text = (cloud.folder / "api.conf").read_text()
        self._engine = sa.create_engine(text.partition("reader_connection = ")[2].split()[0])
        self.most = 0
        """The most servers that were not deleted."""
        self.most_vms = 0
        """The most VMs that ran on nodes that are not lost."""
        admin = cloud.connection("micronova-admin")
        project = cloud.connection().current_project_id
        quota = {"instances": 100, "cores": 200, "ram": 200_000}
        admin.compute.put(f"/os-quota-sets/{project}", json={"quota_set": quota})
        self.admin = admin.compute
        properties = {"flavor": "m1.nano", "image": "cirros", "networks": [{"network": "vmbr0"}]}
        spec = {"type": "os.nova.server", "version": 1.0, "properties": properties}
        self.profile = self.groups.create_profile(name="fifty", spec=spec)

    def create(self) -> Any:
        return self.groups.create_cluster(
            name="fifty", profile_id=self.profile.id, desired_capacity=SIZE
        )

    def delete(self, cluster: Any) -> None:
        """Delete it; nothing is left then."""
        self.groups.delete_cluster(cluster)
        eventually(lambda: not self.servers() and not self.members(), WAIT_SECONDS, 1)
        eventually(lambda: not list(self.groups.clusters()), 60, 1)
        self.groups.delete_profile(self.profile.id)
        assert_nothing_is_left(self.cloud)

    def members(self) -> list[Any]:
        """Each with its index, and what its server is."""
        member, server = schema.scaling_members.c, schema.servers.c
        columns = (member.member_index, server.vm_state, server.host, server.uuid)
        query = sa.select(*columns).outerjoin(schema.servers, server.uuid == member.server_uuid)
        with self._engine.connect() as connection:
            return list(connection.execute(query))

    def servers(self) -> int:
        """How many are not deleted."""
        query = sa.select(sa.func.count()).where(schema.servers.c.deleted_at.is_(None))
        with self._engine.connect() as connection:
            return int(connection.execute(query).scalar_one())

    def is_as_desired(self, size: int) -> bool:
        """Whether the group has come to rest; what may never be is looked at each time."""
        members = self.members()
        twice = collections.Counter(one.member_index for one in members)
        assert max(twice.values(), default=1) == 1, twice
        self.most = max(self.most, self.servers())
        with contextlib.suppress(*_OUT_OF_REACH):
            status = self.groups.get_cluster("fifty").status
            return (status, [one.vm_state for one in members]) == ("ACTIVE", ["active"] * size)
        return False

    def look_at_vms(self, lost: str) -> None:
        """Count the VMs of members on the nodes that are not lost."""
        found = self.cloud.control("GET", "state")["clusters"][0]["vms"]
        there = [one for one in found if one["node"] != lost and one["status"] == "running"]
        self.most_vms = max(self.most_vms, len(there))

    def settled(self, size: int) -> None:
        eventually(lambda: self.is_as_desired(size), WAIT_SECONDS, 1)

    def close(self) -> None:
        self._engine.dispose()


@pytest.fixture
def fifty(tmp_path: Path) -> Iterator[Fifty]:
    with distributed_cloud(tmp_path) as cloud:
        made = Fifty(cloud)
        yield made
        made.close()


def test_fifty_members_and_every_process_is_killed(fifty: Fifty) -> None:
    cloud, groups = fifty.cloud, fifty.groups
    cluster = fifty.create()
    for name in list(cloud.children):
        fifty.is_as_desired(SIZE)
        cloud.kill(name, signal.SIGKILL)
        cloud.restart(name)
    fifty.settled(SIZE)
    # A member that fails in creation is replaced once it is gone: there are never more.
    assert fifty.most == SIZE
    groups.resize_cluster(cluster, adjustment_type="EXACT_CAPACITY", number=SMALLER)
    names = list(cloud.children)
    for name in names:
        cloud.kill(name, signal.SIGKILL)
    for name in names:
        cloud.restart(name)
    fifty.settled(SMALLER)
    assert fifty.servers() == SMALLER
    fifty.delete(cluster)


def test_a_node_of_fifty_members_is_lost_for_good(fifty: Fifty) -> None:
    """The figures are printed: how long it takes, and how many servers there are at most."""
    cloud, cluster = fifty.cloud, fifty.create()
    fifty.settled(SIZE)
    host, count = collections.Counter(one.host for one in fifty.members()).most_common(1)[0]
    former = {one.uuid for one in fifty.members() if one.host == host}
    order = cloud.control("POST", "faults", action="node-down", node=host)
    eventually(lambda: fifty.groups.get_cluster(cluster.id).status == "WARNING", 120)
    service = next(one for one in fifty.admin.services(binary="nova-compute") if one.host == host)
    began = time.monotonic()
    fifty.admin.update_service_forced_down(service, forced=True)

    def replaced() -> bool:
        fifty.look_at_vms(host)
        there = {one.uuid for one in fifty.members()}
        return fifty.is_as_desired(SIZE) and not there & former

    eventually(replaced, WAIT_SECONDS, 0.5)
    seconds = time.monotonic() - began
    assert {one.host for one in fifty.members()} & {host} == set()
    # Those on the lost node count until they are seen gone; elsewhere there is one for each place.
    assert fifty.most == SIZE + count
    assert fifty.most_vms == SIZE
    cloud.control("DELETE", "faults", id=order["id"])
    fifty.admin.update_service_forced_down(service, forced=False)
    back = time.monotonic()
    eventually(lambda: fifty.servers() == SIZE, WAIT_SECONDS, 1)
    print(
        f"{count} of {SIZE} members were on the lost node and replaced in {seconds:.0f} s; "
        f"at most {fifty.most_vms} VMs ran on the others, and {fifty.most} servers were recorded; "
        f"once it was back, the former were removed in {time.monotonic() - back:.0f} s"
    )
    fifty.delete(cluster)
