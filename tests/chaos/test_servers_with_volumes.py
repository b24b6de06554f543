"""What is done to servers that have volumes, while a call of it to Proxmox VE fails in every way.

Whatever happens it ends, the server's VM names the volume if and only if the record says so, and
the volume rests in its holder. Then the server can be used, and is deleted without the volume.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import ids
from common.errors import Conflict
from conductor.rpc.servers.server_volumes import AttachRequest
from conductor.rpc.servers.servers import RebuildServer
from conductor.rpc.volumes.volumes import NewVolume
from db import schema
from tests.chaos.cloud import IMAGE
from tests.chaos.test_real_world import vm_of
from tests.chaos.world import World, world

Act = Callable[[World, Any, str], None]

FAULTS: dict[str, dict[str, Any]] = {
    "fail": {"action": "fail", "status": 500, "text": "something broke"},
    "lock": {"action": "fail", "status": 500, "text": "VM is locked (backup)"},
    "lost": {"action": "lose-answer"},
    "dropped": {"action": "drop"},
    "task": {"action": "task-fail", "text": "start failed: QEMU exited with code 1"},
    "kill": {"action": "task-kill"},
}


def by_name(name: str, **asked: str) -> Act:
    return lambda cloud, row, volume_id: cloud.act(row.uuid, name, **asked)


def attach(cloud: World, row: Any, volume_id: str) -> None:
    cloud.client.attach_volume(cloud.context(), row.uuid, AttachRequest(volume_id))


def detach(cloud: World, row: Any, volume_id: str) -> None:
    cloud.client.detach_volume(cloud.context(), row.uuid, volume_id)


def live(cloud: World, row: Any, volume_id: str) -> None:
    cloud.client.live_migrate_server(cloud.context(), row.uuid, None, None)


def migrate(cloud: World, row: Any, volume_id: str) -> None:
    cloud.client.migrate_server(cloud.context(), row.uuid, None)


def rebuild(cloud: World, row: Any, volume_id: str) -> None:
    request = RebuildServer(ids.named("image", IMAGE))
    cloud.client.rebuild_server(cloud.context(), row.uuid, request)


def elsewhere(cloud: World, row: Any, volume_id: str) -> None:
    hosts = schema.hosts.c.host
    other = cloud.rows(sa.select(hosts).where(hosts != cloud.server(row.uuid).host))[0].host
    cloud.act(row.uuid, "unshelve", host=other)


#: action → (what comes before, the action, whether the server has the volume before)
ACTIONS: dict[str, tuple[tuple[str, ...], Act, bool]] = {
    "shelve": ((), by_name("shelve"), True),
    "unshelve": (("shelve",), by_name("unshelve"), True),
    "unshelve elsewhere": (("shelve",), elsewhere, True),
    "attach to a shelved one": (("shelve",), attach, False),
    "detach from a shelved one": (("shelve",), detach, True),
    "live-migration": ((), live, True),
    "migrate": ((), migrate, True),
    "rebuild": ((), rebuild, True),
}
#: in every run; all others with ``-m long``
SAMPLE = {
    ("shelve", "fail"),
    ("unshelve elsewhere", "task"),
    ("attach to a shelved one", "lost"),
    ("attach to a shelved one", "fail"),
    ("detach from a shelved one", "lock"),
    ("live-migration", "task"),
}
CASES = [
    pytest.param(*case, marks=() if case in SAMPLE else pytest.mark.long)
    for case in itertools.product(ACTIONS, FAULTS)
]


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One cloud for all cases; at its end nothing is left."""
    folder: Path = tmp_path_factory.mktemp("cloud")
    with world(folder / "world", {"proxmox:sim1": {"vm_storage": "shared"}}) as running:
        yield running


def at_rest(cloud: World, uuid: str) -> Any:
    """The server's row once nothing is under way, with the server or with the volume."""
    cloud.until(lambda: not cloud.open_operations())
    return cloud.server(uuid)


def volume(cloud: World, volume_id: str) -> Any:
    found = cloud.rows(sa.select(schema.volumes).where(schema.volumes.c.id == volume_id))
    return found[0] if found else None


def config(cloud: World, vmid: int) -> Any:
    vms = cloud.simulator.state()["sim1"]["vms"]
    return next(vm["config"] for vm in vms if vm["vmid"] == vmid)


def require_right(cloud: World, row: Any, volume_id: str) -> None:
    """The VM has the volume if the record says so; it rests in its holder anyway."""
    record = volume(cloud, volume_id)
    assert record.status in ("available", "in-use")
    had = [one for one in config(cloud, row.vmid).values() if str(one).startswith(record.volid)]
    assert len(had) == (record.status == "in-use"), (record.status, had)
    holder = config(cloud, record.vmid)
    assert (holder.get("unused0"), "scsi0" in holder) == (record.volid, False)
    attached = cloud.rows(sa.select(schema.volume_attachments))
    mine = [one for one in attached if one.volume_id == volume_id]
    assert [one.status for one in mine] == ["attached"] * len(had)


@pytest.mark.parametrize(("action", "fault"), CASES)
def test_record_and_vm_agree(cloud: World, action: str, fault: str) -> None:
    before, act, has = ACTIONS[action]
    row = cloud.built(f"{action}-{fault}".replace(" ", "-"))
    assert row.vm_state == "active"
    made = cloud.client.create_volume(cloud.context(), NewVolume("project", 1))
    cloud.until(lambda: volume(cloud, made).status == "available")
    assert volume(cloud, made).shared
    if has:
        attach(cloud, row, made)
        cloud.until(lambda: volume(cloud, made).status == "in-use")
    for one in before:
        cloud.act(row.uuid, one)
        assert at_rest(cloud, row.uuid).vm_state == "shelved_offloaded"
    path = rf"/{row.vmid}/(status/\w+|config|migrate)$"
    cloud.simulator.fault(method="POST", path=path, **FAULTS[fault])
    act(cloud, row, made)
    at_rest(cloud, row.uuid)
    cloud.calm()
    cloud.follow_remedies()
    require_right(cloud, row, made)

    after = cloud.server(row.uuid)
    if after.vm_state == "shelved_offloaded":
        cloud.act(row.uuid, "unshelve")
    elif after.vm_state == "resized":
        cloud.client.end_resize(cloud.context(), row.uuid, "revertResize")
    else:
        with contextlib.suppress(Conflict):
            cloud.act(row.uuid, "reboot-hard")
    assert at_rest(cloud, row.uuid).vm_state == "active"
    require_right(cloud, row, made)
    assert vm_of(cloud, row)["qmp"] == "running"
    cloud.delete(row.uuid)
    cloud.until(lambda: volume(cloud, made).status == "available")
    assert volume(cloud, made).volid in config(cloud, volume(cloud, made).vmid).values()
    cloud.client.delete_volume(cloud.context(), made)
    cloud.until(lambda: volume(cloud, made) is None)
