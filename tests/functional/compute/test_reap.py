"""A reap looks right before it acts: what changed hands since the audit saw it is left alone.

Between the audit's look and each request of the reap, in turn, somebody does something to the VM
or the volume.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from common import clock
from common.messages.commands import Destroy, PowerAction
from common.messages.reports import Category
from tests.functional.compute.conftest import a_build, a_destroy, a_power
from tests.functional.compute.fence_stage import Stage
from tests.functional.compute.reckoning import Reckoning
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually

OTHER = "5d3f7a52-0000-4000-8000-000000000000"
NODE = "pve1"
KEPT = ("config", "pending", "node", "status", "pid")


@pytest.fixture
def stage(simulator: RunningSimulator, tmp_path: Path, reckoning: Reckoning) -> Iterator[Stage]:
    made = Stage(simulator, tmp_path)
    yield made
    made.client.before = None
    made.worker.stop()
    reckoning.lost += made.taken


def done(stage: Stage, upid: str) -> None:
    """Wait for a task of the administrator."""
    node = upid.split(":")[1]
    eventually(lambda: stage.api.nodes(node).tasks(upid).status.get()["status"] == "stopped", 30)


def another_owner(stage: Stage, vmid: int) -> None:
    text = f"micronova: server={OTHER}"
    stage.api.nodes(NODE).qemu(vmid).config.put(description=text, smbios1=f"uuid={OTHER}")


def another_description(stage: Stage, vmid: int) -> None:
    stage.api.nodes(NODE).qemu(vmid).config.put(description="mine", tags="mine")


def another_machine(stage: Stage, vmid: int) -> None:
    stage.api.nodes(NODE).qemu(vmid).config.put(smbios1=f"uuid={OTHER}")


def started(stage: Stage, vmid: int) -> None:
    done(stage, stage.api.nodes(NODE).qemu(vmid).status.start.post())


def migrated(stage: Stage, vmid: int) -> None:
    stage.api.nodes(NODE).qemu(vmid).config.put(delete="ide2")
    done(stage, stage.api.nodes(NODE).qemu(vmid).migrate.post(target="pve2"))


def used_again(stage: Stage, vmid: int) -> None:
    done(stage, stage.api.nodes(NODE).qemu(vmid).delete(purge=1))
    upid = stage.api.nodes(NODE).qemu.post(vmid=vmid, name="theirs", memory=64, scsi0="local:1")
    done(stage, upid)


def restored(stage: Stage, vmid: int) -> None:
    """It looks as it did, but for its disk's data."""
    node = stage.api.nodes(NODE)
    done(stage, node.vzdump.post(vmid=vmid, storage="local", mode="stop"))
    [archive] = node.storage("local").content.get(content="backup", vmid=vmid)
    done(stage, node.qemu.post(vmid=vmid, archive=archive["volid"], force=1))


CHANGES: tuple[Callable[[Stage, int], None], ...] = (
    another_owner,
    another_description,
    another_machine,
    started,
    migrated,
    used_again,
    restored,
)


def stopped(stage: Stage) -> Any:
    """The build of a VM that is ours, and off."""
    build = a_build(template=None)
    assert stage.worker.run(build).ok
    assert stage.worker.run(a_power(build, PowerAction.STOP)).ok
    return build


def a_reap(build: Any) -> Destroy:
    """As an audit begins one by itself."""
    an_hour_ago = clock.after(-3600)
    return dataclasses.replace(a_destroy(build), stopped_on=NODE, unrestored_since=an_hour_ago)


def looks_before_the_delete(stage: Stage) -> int:
    """How often a reap asks before its first call that changes something."""
    looks: list[str] = []
    build = stopped(stage)
    stage.client.writes.clear()

    def before(method: str, path: str) -> None:
        if not stage.client.writes and method == "get" and f"/{build.placed.vmid}" in f"/{path}":
            looks.append(path)

    stage.client.before = before
    assert stage.worker.run(a_reap(build)).gone
    stage.client.before = None
    assert stage.cluster.is_empty(build.placed.vmid)
    return len(looks)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_changed_hands_is_never_removed(
    stage: Stage, change: Callable[[Stage, int], None]
) -> None:
    """Before each look at the VM in turn, the last one included; and before the first."""
    for position in range(looks_before_the_delete(stage)):
        build = stopped(stage)
        vmid = build.placed.vmid
        stage.taken.append(vmid)
        seen: list[Any] = []
        count = iter(range(1000))
        stage.client.writes.clear()

        def before(method: str, path: str) -> None:
            ours = f"/{vmid}" in f"/{path}"  # noqa: B023
            if not seen and method == "get" and ours and next(count) == position:  # noqa: B023
                change(stage, vmid)  # noqa: B023
                seen.append(stage.cluster.vm(vmid))  # noqa: B023

        stage.client.before = before
        outcome = stage.worker.run(a_reap(build))
        stage.client.before = None
        assert seen, "nothing was changed"
        assert not outcome.gone, position
        after = stage.cluster.vm(vmid)
        assert after is not None, position
        assert {name: after[name] for name in KEPT} == {name: seen[0][name] for name in KEPT}
        # Who it is comes last; that it runs, Proxmox VE sees for itself.
        if change is not started:
            assert [one for one in stage.client.writes if f"/qemu/{vmid}" in one] == []


def test_what_was_restored_is_removed_if_a_person_wants_it(stage: Stage) -> None:
    build = stopped(stage)
    restored(stage, build.placed.vmid)
    outcome = stage.worker.run(a_reap(build))
    assert outcome.failure is not None
    assert outcome.failure.category is Category.FOREIGN
    assert "was restored from a backup by " in outcome.failure.message
    assert outcome.failure.remedy == "micronova orphan reap"
    # It was before there was this server: of another VM, which had the VMID.
    later = dataclasses.replace(a_reap(build), unrestored_since=clock.after(3600))
    assert stage.worker.run(later).gone
    again = stopped(stage)
    restored(stage, again.placed.vmid)
    asked = dataclasses.replace(a_reap(again), unrestored_since=None)
    assert stage.worker.run(asked).gone
    assert stage.cluster.vm(again.placed.vmid) is None


def test_who_starts_it_at_the_very_last_moment_is_not_disturbed(stage: Stage) -> None:
    """After the last look: Proxmox VE itself refuses, and the next look sees why."""
    build = stopped(stage)
    vmid = build.placed.vmid
    begun: list[int] = []

    def before(method: str, path: str) -> None:
        if method == "delete" and not begun:
            begun.append(vmid)
            started(stage, vmid)

    stage.client.before = before
    outcome = stage.worker.run(a_reap(build))
    stage.client.before = None
    assert begun
    assert not outcome.gone
    assert outcome.failure is not None
    assert "it runs by now" in outcome.failure.message
    assert stage.cluster.vm(vmid)["status"] == "running"
    stage.taken.append(vmid)


def leftover(stage: Stage, simulator: RunningSimulator) -> tuple[Any, str]:
    """A disk of ours whose VM went without it."""
    build = stopped(stage)
    vmid = build.placed.vmid
    simulator.fault(leak="L7", vmid=vmid)
    done(stage, stage.api.nodes(NODE).qemu(vmid).delete(purge=1))
    [disk] = [one for one in stage.cluster.volumes(vmid) if ":iso/" not in one]
    stage.taken.append(vmid)
    return build, disk


def their_vm(stage: Stage, vmid: int, **config: Any) -> None:
    done(stage, stage.api.nodes(NODE).qemu.post(vmid=vmid, memory=64, **config))


def test_a_disk_that_another_vm_was_given_stays(stage: Stage, simulator: RunningSimulator) -> None:
    build, disk = leftover(stage, simulator)
    their_vm(stage, 901)
    config = f"nodes/{NODE}/qemu/901/config"
    stage.client.also[config] = {"scsi3": f"{disk},size=2G"}
    outcome = stage.worker.run(a_reap(build))
    assert not outcome.gone
    assert outcome.failure is not None
    assert f"volume {disk}: VM 901 on {NODE} uses it" in outcome.failure.left
    assert outcome.failure.remedy is None
    assert disk in stage.cluster.volumes(build.placed.vmid)
    stage.client.also.clear()
    assert stage.worker.run(a_reap(build)).gone
    assert stage.cluster.is_empty(build.placed.vmid)


def test_a_drive_that_another_vm_has_in_stays(stage: Stage, simulator: RunningSimulator) -> None:
    build = stopped(stage)
    vmid = build.placed.vmid
    [drive] = [one for one in stage.cluster.volumes(vmid) if ":iso/" in one]
    done(stage, stage.api.nodes(NODE).qemu(vmid).delete(purge=1))
    stage.taken.append(vmid)
    their_vm(stage, 902, ide0=f"{drive},media=cdrom")
    outcome = stage.worker.run(a_reap(build))
    assert not outcome.gone
    assert outcome.failure is not None
    assert any("VM 902" in line for line in outcome.failure.left)
    assert stage.cluster.volumes(vmid) == [drive]
    stage.api.nodes(NODE).qemu(902).config.put(delete="ide0")
    assert stage.worker.run(a_reap(build)).gone
    assert stage.cluster.is_empty(vmid)
