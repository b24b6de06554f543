"""A group of fifty servers; its cloud's processes are killed one by one, and all at once."""

from __future__ import annotations

import collections
import contextlib
import signal
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

pytestmark = [pytest.mark.distributed, pytest.mark.long, pytest.mark.timeout(1800)]

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

    def members(self) -> list[Any]:
        """Each with its index, and what its server is."""
        member, server = schema.scaling_members.c, schema.servers.c
        query = sa.select(member.member_index, server.vm_state).outerjoin(
            schema.servers, server.uuid == member.server_uuid
        )
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
    admin, project = cloud.connection("micronova-admin"), cloud.connection().current_project_id
    quota = {"instances": 100, "cores": 200, "ram": 200_000}
    admin.compute.put(f"/os-quota-sets/{project}", json={"quota_set": quota})
    properties = {"flavor": "m1.nano", "image": "cirros", "networks": [{"network": "vmbr0"}]}
    spec = {"type": "os.nova.server", "version": 1.0, "properties": properties}
    profile = groups.create_profile(name="fifty", spec=spec)
    cluster = groups.create_cluster(name="fifty", profile_id=profile.id, desired_capacity=SIZE)
    for name in list(cloud.children):
        fifty.is_as_desired(SIZE)
        cloud.kill(name, signal.SIGKILL)
        cloud.restart(name)
    fifty.settled(SIZE)
    # One that fails in creation is replaced once it is gone: there are never more.
    assert fifty.most == SIZE
    groups.resize_cluster(cluster, adjustment_type="EXACT_CAPACITY", number=SMALLER)
    names = list(cloud.children)
    for name in names:
        cloud.kill(name, signal.SIGKILL)
    for name in names:
        cloud.restart(name)
    fifty.settled(SMALLER)
    assert fifty.servers() == SMALLER
    groups.delete_cluster(cluster)
    eventually(lambda: not fifty.servers() and not fifty.members(), WAIT_SECONDS, 1)
    eventually(lambda: not list(groups.clusters()), 60, 1)
    groups.delete_profile(profile.id)
    assert_nothing_is_left(cloud)
