"""Another root disk for a server's VM, on a simulated cluster: swapped, or as it was."""

from __future__ import annotations

from typing import Any

import pytest

from common.messages.commands import Build, Image, PowerAction, Swap
from common.messages.reports import Category
from common.resources.states import PowerState
from tests.fixtures.root_shell import RootShell
from tests.functional.compute.conftest import (
    Cluster,
    RunningSimulator,
    Worker,
    a_build,
    a_destroy,
    a_power,
    a_swap,
    an_end,
    as_root,
)

NAMES = ("name", "scsi0", "ide2", "boot", "ostype", "net0", "cores", "description")


@pytest.fixture
def build(worker: Worker) -> Build:
    build = a_build()
    assert worker.run(build).ok
    return build


def config_of(cluster: Cluster, build: Build) -> dict[str, Any]:
    """What counts of a VM's configuration, unused disks included."""
    config = cluster.vm(build.placed.vmid)["config"]
    counts = {
        name: value for name, value in config.items() if name in NAMES or name.startswith("unused")
    }
    # A CD that is inserted is appended to the boot order, unless the VM is made with it.
    return {**counts, "boot": str(counts["boot"]).removesuffix(";ide2")}


def root_of(cluster: Cluster, build: Build) -> str:
    return str(config_of(cluster, build)["scsi0"]).partition(",")[0]


def drive_of(cluster: Cluster, build: Build) -> str:
    return str(config_of(cluster, build)["ide2"]).partition(",")[0]


@pytest.mark.parametrize("running", [True, False])
def test_a_new_disk_beside_the_old_one(
    worker: Worker, cluster: Cluster, build: Build, running: bool
) -> None:
    if not running:
        assert worker.run(a_power(build, PowerAction.STOP)).ok
    was, drive = root_of(cluster, build), drive_of(cluster, build)
    power = PowerState.RUNNING if running else PowerState.SHUTDOWN
    swap = a_swap(build, running=running)
    outcome = worker.run(swap)
    assert (outcome.failure, outcome.power_state) == (None, power)
    now = config_of(cluster, build)
    assert root_of(cluster, build) != was
    assert now["unused0"] == was
    assert (now["name"], "size=2G" in now["scsi0"]) == ("new", True)
    assert drive_of(cluster, build) != drive
    writes = len(cluster.calls("POST", "/config"))
    assert worker.run(swap).power_state == power
    assert len(cluster.calls("POST", "/config")) == writes

    assert worker.run(an_end(build, keep=True)).ok
    kept = config_of(cluster, build)
    assert "unused0" not in kept
    assert "before=" not in kept["description"]
    assert set(cluster.volumes(build.placed.vmid)) == {
        root_of(cluster, build),
        drive_of(cluster, build),
    }
    assert worker.run(an_end(build, keep=True)).ok
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)


def test_all_is_given_back(worker: Worker, cluster: Cluster, build: Build) -> None:
    was, volumes = config_of(cluster, build), set(cluster.volumes(build.placed.vmid))
    assert worker.run(a_swap(build)).ok
    for _ in range(2):
        outcome = worker.run(an_end(build, keep=False))
        assert (outcome.failure, outcome.power_state) == (None, PowerState.RUNNING)
        assert config_of(cluster, build) == was
        assert set(cluster.volumes(build.placed.vmid)) == volumes


def test_what_another_rebuild_left_is_settled_first(
    worker: Worker, cluster: Cluster, build: Build
) -> None:
    """The server has been used since: its present disk is never given up for an older one."""
    assert worker.run(a_swap(build)).ok
    has = root_of(cluster, build)
    assert worker.run(a_swap(build)).ok
    now = config_of(cluster, build)
    assert [value for name, value in now.items() if name.startswith("unused")] == [has]
    assert worker.run(an_end(build, keep=False)).ok
    assert root_of(cluster, build) == has
    assert len(cluster.volumes(build.placed.vmid)) == 2


@pytest.mark.parametrize("rescue", [True, False])
def test_a_failure_gives_back_nothing_of_others(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, build: Build, rescue: bool
) -> None:
    assert worker.run(a_swap(build)).ok
    was = config_of(cluster, build)
    simulator.fault(action="fail", method="POST", path=r"/qemu/\d+/config$", text="No space left")
    outcome = worker.run(a_swap(build, rescue=rescue))
    assert outcome.failure is not None
    assert (outcome.failure.clean, config_of(cluster, build)) == (True, was)
    assert worker.run(an_end(build, keep=False)).ok
    assert config_of(cluster, build) == was


def test_a_rescue_that_was_left_ends_first(worker: Worker, cluster: Cluster, build: Build) -> None:
    was = root_of(cluster, build)
    assert worker.run(a_rescue(build)).ok
    assert worker.run(a_swap(build)).ok
    now = config_of(cluster, build)
    assert (now["unused0"], now["boot"].startswith("order=scsi0")) == (was, True)
    assert "scsi15" not in cluster.vm(build.placed.vmid)["config"]
    assert worker.run(an_end(build, keep=True)).ok
    assert len(cluster.volumes(build.placed.vmid)) == 2


def test_hardware_that_the_image_asks_for(worker: Worker, cluster: Cluster, build: Build) -> None:
    was = config_of(cluster, build)
    properties = {"os_type": "windows", "hw_vif_model": "e1000"}
    assert worker.run(a_swap(build, image_properties=properties)).ok
    now = config_of(cluster, build)
    assert now["ostype"] == "win11"
    assert now["net0"] == was["net0"].replace("virtio=", "e1000=")
    assert worker.run(an_end(build, keep=False)).ok
    assert config_of(cluster, build) == was


def a_rescue(build: Build, **changes: Any) -> Swap:
    return a_swap(build, rescue=True, disk_gib=0, **changes)


@pytest.mark.parametrize("running", [True, False])
def test_a_disk_to_be_rescued_from(
    worker: Worker, cluster: Cluster, build: Build, running: bool
) -> None:
    if not running:
        assert worker.run(a_power(build, PowerAction.STOP)).ok
    was, volumes = config_of(cluster, build), set(cluster.volumes(build.placed.vmid))
    rescue = a_rescue(build, running=running)
    for _ in range(2):
        outcome = worker.run(rescue)
        assert (outcome.failure, outcome.power_state) == (None, PowerState.RUNNING)
    now = config_of(cluster, build)
    assert now["boot"].startswith("order=scsi15")
    assert (now["scsi0"], now["name"]) == (was["scsi0"], was["name"])
    assert "unused0" not in now
    assert cluster.vm(build.placed.vmid)["config"]["scsi15"]
    assert now["ide2"] != was["ide2"]
    assert len(cluster.volumes(build.placed.vmid)) == 4

    for _ in range(2):
        outcome = worker.run(an_end(build, keep=False, rescued=True))
        assert (outcome.failure, outcome.power_state) == (None, PowerState.RUNNING)
        assert config_of(cluster, build) == was
        assert "scsi15" not in cluster.vm(build.placed.vmid)["config"]
        assert set(cluster.volumes(build.placed.vmid)) == volumes


def test_a_rescue_that_fails_is_undone(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, build: Build
) -> None:
    was, volumes = config_of(cluster, build), set(cluster.volumes(build.placed.vmid))
    simulator.fault(action="fail", method="POST", path="/status/start$", text="no")
    outcome = worker.run(a_rescue(build))
    assert outcome.failure is not None
    assert (outcome.failure.clean, outcome.power_state) == (True, PowerState.RUNNING)
    assert (config_of(cluster, build), set(cluster.volumes(build.placed.vmid))) == (was, volumes)


def test_a_rescue_of_which_the_note_was_removed(
    worker: Worker,
    cluster: Cluster,
    simulator: RunningSimulator,
    build: Build,
    shell: RootShell,
) -> None:
    assert worker.run(a_rescue(build)).ok
    said = config_of(cluster, build)["description"].partition("\nmicronova: before")[0]
    as_root(simulator).nodes("pve1").qemu(build.placed.vmid).config.put(description=said)
    refused = worker.run(an_end(build, keep=False, rescued=True))
    assert refused.failure is not None
    assert str(refused.failure.remedy).startswith("as root on pve1: qm set")
    shell.run(str(refused.failure.remedy))
    assert worker.run(an_end(build, keep=False, rescued=True)).ok
    assert config_of(cluster, build)["boot"] == "order=scsi0"
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)


FAULTS = [
    ("POST", r"/qemu/\d+/config$", 0),
    ("POST", r"/qemu/\d+/config$", 1),
    ("POST", "/status/start$", 0),
    ("POST", "/status/shutdown$", 0),
    ("POST", "/storage/local/upload$", 0),
    ("PUT", "/resize$", 0),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("method", "path", "skip"), FAULTS)
def test_what_fails_is_undone(
    worker: Worker,
    cluster: Cluster,
    simulator: RunningSimulator,
    build: Build,
    method: str,
    path: str,
    skip: int,
) -> None:
    was, volumes = config_of(cluster, build), set(cluster.volumes(build.placed.vmid))
    text = "No space left on device"
    simulator.fault(action="fail", method=method, path=path, text=text, nth=skip + 1)
    outcome = worker.run(a_swap(build, disk_gib=3))
    assert outcome.failure is not None
    assert outcome.failure.clean, outcome.failure
    assert outcome.power_state == PowerState.RUNNING
    assert config_of(cluster, build) == was
    assert set(cluster.volumes(build.placed.vmid)) == volumes


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("method", "path", "skip"), FAULTS)
@pytest.mark.parametrize("how", [{}, {"how": "drop"}])
def test_a_lost_answer_is_looked_for(
    worker: Worker,
    cluster: Cluster,
    simulator: RunningSimulator,
    build: Build,
    method: str,
    path: str,
    skip: int,
    how: dict[str, Any],
) -> None:
    simulator.fault(action="lose-answer", method=method, path=path, nth=skip + 1, **how)
    outcome = worker.run(a_swap(build, disk_gib=3))
    assert outcome.failure is None
    assert len(cluster.volumes(build.placed.vmid)) == 4
    assert worker.run(an_end(build, keep=True)).ok
    assert len(cluster.volumes(build.placed.vmid)) == 2


@pytest.mark.sampled(3)
@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("keep", [True, False])
def test_an_end_that_failed_is_repeated(
    worker: Worker,
    cluster: Cluster,
    simulator: RunningSimulator,
    build: Build,
    keep: bool,
    nth: int,
) -> None:
    assert worker.run(a_swap(build)).ok
    path = r"/qemu/\d+/config$"
    simulator.fault(action="fail", method="POST", path=path, text="got timeout", nth=nth)
    end = an_end(build, keep=keep)
    if not worker.run(end).ok:
        assert worker.run(end).ok
    assert len(cluster.volumes(build.placed.vmid)) == 2
    assert "before=" not in config_of(cluster, build)["description"]


def test_what_can_t_be_is_refused_before_it_is_stopped(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, build: Build
) -> None:
    was = config_of(cluster, build)
    gone = Image("i", "gone", "shared:import/gone.qcow2", 1)
    refused = worker.run(a_swap(build, image=gone))
    assert refused.failure is not None
    assert refused.failure.category is Category.IMAGE_NOT_FOUND
    stops = len(cluster.calls("POST", "/status/shutdown"))
    vmid = build.placed.vmid
    api = as_root(simulator).nodes("pve1").qemu(vmid)
    assert worker.run(a_power(build, PowerAction.STOP)).ok
    # As of an adopted VM, whose disks are wherever they were.
    disk = api.config.get()["scsi0"].partition(",")[0]
    about = api.config.get()["description"]
    smbios = f"micronova: adopted smbios={build.resource_id}"
    api.config.put(delete="scsi0", description=f"{about}\n{smbios}")
    api.config.put(virtio1=disk, boot="order=virtio1")
    refused = worker.run(a_swap(build, running=False))
    assert refused.failure is not None
    assert refused.failure.category is Category.API_NOT_SUPPORTED
    assert len(cluster.calls("POST", "/status/shutdown")) == stops + 1
    assert was["name"] == config_of(cluster, build)["name"]


def test_a_root_disk_that_is_gone_is_made_again(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, build: Build
) -> None:
    assert worker.run(a_power(build, PowerAction.STOP)).ok
    api = as_root(simulator).nodes("pve1").qemu(build.placed.vmid)
    api.config.put(delete="scsi0")
    start = worker.run(a_power(build, PowerAction.START)).failure
    assert start is not None
    assert start.category is Category.DISK_LOST
    assert worker.run(a_swap(build, running=False)).ok
    config = config_of(cluster, build)
    assert config["scsi0"]
    assert config["boot"].startswith("order=scsi0")
    assert worker.run(an_end(build, keep=True)).ok
    assert worker.run(a_power(build, PowerAction.START)).ok


def test_others_vms_are_left_alone(worker: Worker, cluster: Cluster, build: Build) -> None:
    other, was = a_build(build.placed.vmid), config_of(cluster, build)
    assert not worker.run(a_swap(other)).ok
    assert not worker.run(an_end(other, keep=True)).ok
    assert config_of(cluster, build) == was


def test_a_delete_in_between_removes_all(worker: Worker, cluster: Cluster, build: Build) -> None:
    assert worker.run(a_swap(build)).ok
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)


@pytest.mark.parametrize("stopped", [True, False])
def test_a_look_at_the_way_back_says_which_disk_it_has(
    worker: Worker, cluster: Cluster, build: Build, stopped: bool
) -> None:
    """Not whether it runs: what stopped it was perhaps the rebuild. Nothing is written."""
    if stopped:
        assert worker.run(a_power(build, PowerAction.STOP)).ok
    was = config_of(cluster, build)
    power = PowerState.SHUTDOWN if stopped else PowerState.RUNNING
    never = a_swap(build)
    assert not worker.look(never).ok
    seen = worker.look(an_end(build, keep=False))
    assert (seen.ok, seen.power_state) == (True, power)
    assert config_of(cluster, build) == was
    # A new disk, or a later rebuild's, is not what it had.
    swap = a_swap(build, running=not stopped)
    assert worker.run(swap).ok
    given = config_of(cluster, build)
    back = an_end(build, keep=False)
    assert not worker.look(back).ok
    assert config_of(cluster, build) == given
    assert worker.run(an_end(build, keep=True)).ok
    assert not worker.look(back).ok


def test_a_look_at_the_way_back_takes_what_was_only_noted(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, build: Build
) -> None:
    """And the new config drive that lies beside: both go with the next rebuild, or the VM."""
    was = config_of(cluster, build)
    refused = {"action": "fail", "method": "POST", "path": r"/qemu/\d+/config$", "text": "no"}
    simulator.fault(**refused, nth=2, times=0)
    simulator.fault(action="fail", method="DELETE", path="/content/", text="no", times=0)
    assert not worker.run(a_swap(build)).ok
    assert "before=" in config_of(cluster, build)["description"]
    simulator.control("DELETE", "faults")
    assert worker.look(an_end(build, keep=False)).ok
    again = a_swap(build)
    assert worker.run(again).ok
    assert worker.run(an_end(build, keep=True)).ok
    assert root_of(cluster, build) != str(was["scsi0"]).partition(",")[0]
    assert set(cluster.volumes(build.placed.vmid)) == {
        root_of(cluster, build),
        drive_of(cluster, build),
    }
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)
