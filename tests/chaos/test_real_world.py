"""What a real Proxmox VE did to servers, told as stories that end well here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from db import schema
from tests.chaos.world import World, world


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[World]:
    """A cloud of its own for each story."""
    with world(tmp_path) as running:
        yield running


def vm_of(cloud: World, row: Any) -> Any:
    """The server's VM as Proxmox VE has it; None: it is gone."""
    vms = cloud.simulator.state()["sim1"]["vms"]
    return next((vm for vm in vms if vm["vmid"] == row.vmid), None)


def configure(cloud: World, row: Any, **values: str) -> None:
    """What a person at the cluster changes of a VM."""
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        cluster.edit(cluster.vms[row.vmid]).config.update(values)


def at_rest(cloud: World, uuid: str) -> Any:
    """The server's row once nothing is being done to it."""
    return cloud.until(lambda: (row := cloud.server(uuid)).task_state is None and row)


def last_operation(cloud: World, uuid: str) -> Any:
    """What was asked last of a server."""
    columns = schema.operations.c
    query = sa.select(schema.operations).where(columns.server_uuid == uuid)
    return cloud.rows(query.order_by(columns.id))[-1]


def test_a_protected_server_is_not_stopped_by_its_delete(cloud: World) -> None:
    """The VM was stopped, then Proxmox VE refused to destroy it: a server down, and not deleted.

    Here the delete ends at once, the server is as it was, and the fault names the line that lifts
    the protection; then it can be deleted.
    """
    row = cloud.built("precious")
    configure(cloud, row, protection="1")
    before = vm_of(cloud, row)
    cloud.act(row.uuid, "delete")
    after = at_rest(cloud, row.uuid)
    assert (after.vm_state, after.deleted_at) == ("active", None)
    assert vm_of(cloud, row)["pid"] == before["pid"]
    operation = last_operation(cloud, row.uuid)
    assert (operation.action, operation.state, operation.attempt) == ("delete", "failed", 1)
    fault = cloud.faults(row.uuid)[-1]
    assert fault.category == "protected"
    assert fault.remedy == f"as root on {row.node}: qm set {row.vmid} --protection 0"
    cloud.follow_remedies()
    assert fault.remedy in cloud.followed
    cloud.delete(row.uuid)
    assert vm_of(cloud, row) is None
