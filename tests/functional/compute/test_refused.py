"""What is refused, by Proxmox VE for want of a privilege or by the fence: its remedy is enough."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping

import pytest

from common import clock
from common.messages.commands import Build, Command, MakeVolume, SnapshotVerb, SnapVolume
from common.messages.reports import Category
from common.resources.states import ResourceType
from compute.hypervisor.proxmox.vmconfig import by_hand
from simulator.state.roles import agent_roles
from tests.fixtures.root_shell import RootShell
from tests.functional.compute.conftest import (
    CLOUD,
    Cluster,
    Worker,
    a_build,
    a_destroy,
    a_growth,
    a_move,
    a_removal,
    a_volume,
)

GRANTED = next(one.privileges for one in agent_roles(optional=False) if one.name == "Micronova")
_SET = "pveum role modify Micronova --privs"


@pytest.fixture
def built(worker: Worker) -> Iterator[Build]:
    build = a_build(storage="shared", template=None)
    assert worker.run(build).ok
    yield build
    assert worker.run(a_destroy(build)).gone


def refused_until_granted(
    worker: Worker, root: RootShell, privilege: str, command: Callable[[], Command]
) -> None:
    root.run(f"{_SET} '{','.join(sorted(GRANTED - {privilege}))}'")
    failure = worker.run(command()).failure
    assert failure is not None
    assert failure.category is Category.AUTHORIZATION
    assert privilege in failure.message
    assert failure.remedy is not None
    assert failure.remedy.startswith("as root on a node of the cluster: ")
    assert f"'{privilege}'" in failure.remedy
    root.run(failure.remedy)
    assert worker.run(command()).ok


@pytest.mark.parametrize(
    ("privilege", "command"),
    [
        ("VM.Config.Disk", lambda build: a_growth(build, build.disk_gib + 1)),
        ("VM.Migrate", lambda build: a_move(build, "pve2")),
    ],
)
def test_of_a_server(
    privilege: str,
    command: Callable[[Build], Command],
    built: Build,
    worker: Worker,
    root: RootShell,
) -> None:
    refused_until_granted(worker, root, privilege, lambda: command(built))


def test_a_snapshot_of_a_volume(worker: Worker, root: RootShell) -> None:
    volume = a_volume(storage="shared")
    made = worker.run(volume).volume
    assert made is not None
    refused_until_granted(
        worker, root, "VM.Snapshot", lambda: a_snapshot(volume, made.volid, SnapshotVerb.TAKE)
    )
    assert worker.run(a_snapshot(volume, made.volid, SnapshotVerb.REMOVE)).ok
    assert worker.run(a_removal(volume, made.volid)).gone


def test_a_holder_whose_notes_were_edited(
    worker: Worker, root: RootShell, cluster: Cluster
) -> None:
    volume = a_volume(storage="shared")
    made = worker.run(volume).volume
    assert made is not None
    root.run(f"qm set {volume.placed.vmid} --description 'the data of Ann'")
    failure = worker.run(a_snapshot(volume, made.volid, SnapshotVerb.TAKE)).failure
    assert failure is not None
    assert failure.category is Category.MARK_LOST
    assert failure.remedy is not None
    assert "\n" not in failure.remedy
    root.run(failure.remedy)
    assert worker.run(a_snapshot(volume, made.volid, SnapshotVerb.TAKE)).ok
    assert worker.run(a_snapshot(volume, made.volid, SnapshotVerb.REMOVE)).ok
    assert worker.run(a_removal(volume, made.volid)).gone


def a_snapshot(volume: MakeVolume, volid: str, verb: SnapshotVerb) -> SnapVolume:
    number = a_volume().operation_id
    return SnapVolume(
        number,
        1,
        ResourceType.VOLUME,
        volume.resource_id,
        volume.placed,
        clock.after(60),
        verb=verb,
        volid=volid,
        name="s1",
        cloud=CLOUD,
    )


def test_a_vm_that_is_another_servers_by_all_its_marks(
    built: Build, worker: Worker, root: RootShell, cluster: Cluster
) -> None:
    """As where that one's VM was restored to the VMID: nothing of the server is there."""
    other = a_build(storage="shared", template=None)
    assert worker.run(other).ok
    mine, theirs = (dict(cluster.vm(one.placed.vmid)["config"]) for one in (built, other))
    was = {name: str(mine[name]) for name in ("description", "smbios1")}

    def write(marks: Mapping[str, str]) -> None:
        vmid = built.placed.vmid
        root.run(by_hand.describe(vmid, marks["description"]))
        root.run(f"qm set {vmid} --smbios1 {shlex.quote(marks['smbios1'])}")

    # One mark may be a person's mistake.
    write({**was, "description": theirs["description"]})
    failure = worker.run(a_destroy(built)).failure
    assert failure is not None
    assert (failure.category, failure.refused) == (Category.MARK_LOST, False)
    write(theirs)
    failure = worker.run(a_destroy(built)).failure
    assert failure is not None
    assert (failure.category, failure.refused) == (Category.FOREIGN, True)
    assert cluster.vm(built.placed.vmid) is not None
    write({"description": "mine", "smbios1": theirs["smbios1"]})
    failure = worker.run(a_destroy(built)).failure
    assert failure is not None
    assert (failure.category, failure.refused) == (Category.FOREIGN, False)
    write(was)
    assert worker.run(a_destroy(other)).gone
