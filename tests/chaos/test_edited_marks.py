"""People edit the marks of a VM's owner: it is reported, and mended only where it is proven."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import ids
from common.context import RequestContext
from db import schema
from simulator.state.access import Identity
from simulator.state.model import Vm
from tests.chaos.world import World, world

ADMIN = RequestContext(user_id="boss", project_id="admin", roles=["admin"], is_admin=True)
OTHER = ids.named("server", "other")


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[World]:
    """Two nodes; agents look seldom, so that nothing but the audit finds what was edited."""
    with world(tmp_path) as running:
        yield running


def edit(cloud: World, vmid: int, **changes: str | None) -> dict[str, Any]:
    """As a person does it in the configuration; returns what it was."""
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        config = cluster.edit(cluster.vms[vmid]).config
        before = {name: config.get(name) for name in changes}
        for name, value in changes.items():
            if value is None:
                config.pop(name, None)
            else:
                config[name] = value
    return before


def config_of(cloud: World, vmid: int) -> dict[str, Any]:
    """The VM's configuration now."""
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        return dict(cluster.vms[vmid].config)


def findings(cloud: World) -> dict[str, Any]:
    """What the last audit left, by kind."""
    cloud.audited()
    query = sa.select(schema.findings).where(schema.findings.c.healed_at.is_(None))
    return {row.kind: row for row in cloud.rows(query)}


def mark(cloud: World, uuid: str) -> Any:
    """`micronova server mark`; the operation at its end."""
    cloud.client.mark_server(ADMIN, uuid)
    query = sa.select(schema.operations).where(schema.operations.c.action == "mark")

    def ended() -> Any:
        row = cloud.rows(query.order_by(schema.operations.c.id.desc()).limit(1))[0]
        return row if row.state in ("done", "failed") else None

    return cloud.until(ended)


@pytest.mark.parametrize(
    "description",
    [None, "our important database", f"micronova: server={OTHER}", "micronova: server="],
    ids=["gone", "a person's text", "another server", "cut off"],
)
def test_a_mark_that_was_edited_away_is_reported_and_written_again(
    cloud: World, description: str | None
) -> None:
    row = cloud.built("db")
    # The tag is left: nothing in any list shows the edit.
    edit(cloud, row.vmid, description=description)
    found = findings(cloud)
    assert set(found) == {"mark_lost"}
    assert found["mark_lost"].remedy == f"micronova server mark {row.uuid}"
    assert found["mark_lost"].heal is None, "no audit writes it by itself"
    # A delete meets the fence, as before: nothing is destroyed on a weaker proof.
    cloud.act(row.uuid, "delete")
    cloud.until(lambda: cloud.faults(row.uuid))
    assert row.vmid in cloud.simulator.cluster().vms
    assert mark(cloud, row.uuid).state == "done"
    cloud.delete(row.uuid)
    assert findings(cloud) == {}


def test_what_people_wrote_beside_the_mark_stays(cloud: World) -> None:
    row = cloud.built("db")
    edit(cloud, row.vmid, description="ask Ann before a reboot", tags="prod")
    assert mark(cloud, row.uuid).state == "done"
    config = config_of(cloud, row.vmid)
    assert config["description"].splitlines()[:2] == [
        "ask Ann before a reboot",
        f"micronova: server={row.uuid}",
    ]
    assert set(config["tags"].split(";")) == {"prod", "micronova"}
    assert findings(cloud) == {}


def test_a_vm_whose_smbios_uuid_was_edited_too_is_never_marked(cloud: World) -> None:
    row = cloud.built("db")
    stranger = {"description": f"micronova: server={OTHER}", "smbios1": f"uuid={OTHER}"}
    edit(cloud, row.vmid, **stranger)
    found = findings(cloud)
    assert set(found) == {"vm_replaced"}
    assert "qm set" in found["vm_replaced"].remedy
    operation = mark(cloud, row.uuid)
    assert operation.state == "failed"
    assert f"its SMBIOS UUID is {OTHER}" in operation.message
    assert config_of(cloud, row.vmid)["description"] == stranger["description"]
    # The operator, who knows that it is the server's, does what the remedy says.
    edit(cloud, row.vmid, smbios1=f"uuid={row.uuid}")
    assert set(findings(cloud)) == {"mark_lost"}
    assert mark(cloud, row.uuid).state == "done"
    lines = config_of(cloud, row.vmid)["description"].splitlines()
    assert lines[0] == f"micronova: server={row.uuid}"
    assert findings(cloud) == {}


def test_a_vm_that_names_its_server_with_another_smbios_uuid_is_reported(cloud: World) -> None:
    row = cloud.built("db")
    before = edit(cloud, row.vmid, smbios1=f"uuid={OTHER}")
    found = findings(cloud)
    assert set(found) == {"smbios_edited"}
    assert f"qm set {row.vmid} --smbios1 uuid={row.uuid}" in found["smbios_edited"].remedy
    assert mark(cloud, row.uuid).state == "failed"
    edit(cloud, row.vmid, **before)
    assert findings(cloud) == {}


def test_a_vm_that_somebody_made_in_its_place_is_never_marked(cloud: World) -> None:
    """With the server's SMBIOS UUID, as in a copied configuration."""
    row = cloud.built("db")
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        ours = cluster.vms[row.vmid]
        cluster.remove_vm(ours)
        made = {"smbios1": f"uuid={row.uuid}", "name": "mine"}
        cluster.add_vm(Vm(row.vmid, row.node, made))
        book = cluster.tasks
        task = book._new(cluster.nodes[row.node], "qmcreate", str(row.vmid), Identity("root@pam"))
        task.exitstatus, task.endtime = "OK", task.starttime
        book.tasks[task.upid] = task
        book._archive(task)
    operation = mark(cloud, row.uuid)
    assert operation.state == "failed"
    assert "it was made by root@pam" in operation.message
    with cluster.turn():
        stranger = cluster.vms[row.vmid]
        assert "description" not in stranger.config
        cluster.remove_vm(stranger)
        cluster.add_vm(Vm(row.vmid, row.node, dict(ours.config)))


def test_descriptions_are_read_in_turns(tmp_path: Path) -> None:
    with world(tmp_path, {"conductor": {"audit_reads": "2"}}) as cloud:
        cloud.create("many", count=5)
        cloud.until(lambda: all(row.vm_state == "active" for row in cloud.alive()))
        rows = cloud.alive()
        edit(cloud, rows[3].vmid, description=None)
        began = cloud.simulator.recorder.since(0)[-1]["n"]
        audits = 0
        for _ in range(6):
            audits += 1
            if findings(cloud):
                break
        assert set(findings(cloud)) == {"mark_lost"}
        reads = [
            call
            for call in cloud.simulator.recorder.since(began)
            if call["method"] == "GET" and call["path"].endswith("/config")
        ]
        # Two of a look; what differs is looked at twice.
        assert len(reads) <= 2 * (audits + 3)
        assert mark(cloud, rows[3].uuid).state == "done"
