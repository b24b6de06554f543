"""What is done to servers that have volumes: they keep them, and nothing else of these changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from common.messages.commands import Build, MakeVolume, PowerAction, Size
from common.resources.states import PowerState
from tests.functional.compute import test_volumes as volumes
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_copy,
    a_destroy,
    a_growth,
    a_move,
    a_power,
    a_removal,
    a_shape,
    a_swap,
    a_volume,
    an_attachment,
    an_end,
)
from tests.functional.compute.test_move import LOCAL, SHARED, Stage, _running
from tests.functional.compute.test_swap import a_rescue
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually

COPY = 198_500


class Had:
    """A server that has a volume."""

    def __init__(self, worker: Worker, cluster: Cluster, build: Build, storage: str) -> None:
        self.worker, self.cluster, self.build = worker, cluster, build
        self.volume: MakeVolume = a_volume(storage=storage)
        made = worker.run(self.volume)
        assert made.volume is not None, made
        self.volid = made.volume.volid
        assert worker.run(an_attachment(build, self.volume, self.volid)).ok

    @property
    def config(self) -> Any:
        return self.cluster.vm(self.build.placed.vmid)["config"]

    @property
    def named(self) -> str:
        """How the server's VM names it."""
        return str(self.config.get("scsi1"))

    def untouched(self) -> bool:
        """Whether the volume rests in its holder, and is attached to the server by its serial."""
        holder = self.cluster.vm(self.volume.placed.vmid)["config"]
        parked = holder["unused0"] == self.volid and "scsi0" not in holder
        mine = self.cluster.volumes(self.volume.placed.vmid)
        serial = f"serial={self.volume.resource_id[:20]}"
        return parked and mine == [self.volid] and serial in self.named

    def given_back(self, placed: Any = None) -> None:
        """The server loses it, and both go."""
        where = {} if placed is None else {"placed": placed}
        off = an_attachment(self.build, self.volume, self.volid, on=False, **where)
        assert self.worker.run(off).ok
        assert "scsi1" not in self.config
        assert self.worker.run(a_removal(self.volume, self.volid, self.build)).gone


@pytest.fixture
def had(worker: Worker, cluster: Cluster) -> Had:
    build = a_build()
    assert worker.run(build).ok
    return Had(worker, cluster, build, "local")


def test_a_rebuild_keeps_it(had: Had) -> None:
    was = had.named
    for keep in (True, False):
        assert had.worker.run(a_swap(had.build)).ok
        assert had.worker.run(an_end(had.build, keep=keep)).ok
        assert (had.named, had.untouched()) == (was, True)
    assert not [key for key in had.config if key.startswith("unused")]
    had.given_back()


def test_a_rescue_keeps_it(had: Had) -> None:
    was = had.named
    assert had.worker.run(a_rescue(had.build)).ok
    assert (had.named, had.untouched()) == (was, True)
    assert had.config["boot"].startswith("order=scsi15")
    assert had.worker.run(an_end(had.build, keep=False, rescued=True)).ok
    assert (had.named, had.untouched()) == (was, True)
    had.given_back()


def test_an_image_is_of_the_root_disk_only(had: Had) -> None:
    outcome = had.worker.run(a_copy(had.build, COPY))
    assert outcome.ok, outcome
    copied = had.cluster.vm(COPY)["config"]
    assert [key for key in copied if key.startswith("scsi") and key != "scsihw"] == ["scsi0"]
    assert outcome.disk is not None
    assert len([one for one in had.cluster.volumes(COPY) if "iso" not in one]) == 1
    assert had.untouched()


@pytest.mark.parametrize("running", [True, False])
def test_another_size_keeps_it(had: Had, running: bool) -> None:
    if not running:
        assert had.worker.run(a_power(had.build, PowerAction.STOP)).ok
    was = had.named
    assert had.worker.run(a_shape(had.build, Size(4, 1024), running=running)).ok
    assert had.worker.run(a_growth(had.build, 4)).ok
    assert (had.named, had.untouched()) == (was, True)
    assert "size=4G" in had.config["scsi0"]
    had.given_back()


def test_power_keeps_it(had: Had) -> None:
    was = had.named
    for action in ("reboot_hard", "pause", "unpause", "suspend", "resume", "stop", "start"):
        outcome = had.worker.run(a_power(had.build, PowerAction(action)))
        assert outcome.ok, (action, outcome)
        assert (had.named, had.untouched()) == (was, True)
    had.given_back()


def test_one_whose_memory_is_saved_is_left_alone(had: Had) -> None:
    assert had.worker.run(a_power(had.build, PowerAction.SUSPEND)).ok
    before = had.config
    for on in (True, False):
        other = a_volume()
        made = had.worker.run(other)
        assert made.volume is not None
        volume, volid = (other, made.volume.volid) if on else (had.volume, had.volid)
        refused = had.worker.run(
            an_attachment(had.build, volume, volid, on=on, slot=2 if on else 1)
        )
        assert refused.failure is not None
        assert had.config == before
        assert had.worker.run(a_removal(other, made.volume.volid)).gone


def test_a_server_that_goes_leaves_it(had: Had) -> None:
    assert had.worker.run(a_destroy(had.build)).gone
    assert had.cluster.volumes(had.volume.placed.vmid) == [had.volid]
    assert had.worker.run(a_removal(had.volume, had.volid, had.build)).gone


@pytest.mark.parametrize("root", ["local", "shared"])
def test_a_server_moves_with_a_shared_one(
    simulator: RunningSimulator, worker: Worker, cluster: Cluster, tmp_path: Path, root: str
) -> None:
    with _running(simulator, tmp_path, LOCAL if root == "local" else SHARED) as running:
        stage = Stage(running, cluster, root)
        had = Had(running, cluster, stage.build, "shared")
        was = had.named
        live = running.run(a_move(stage.build, "pve2"))
        assert (live.ok, live.node, live.power_state) == (True, "pve2", PowerState.RUNNING)
        assert (had.named, had.untouched()) == (was, True)
        assert running.run(a_power(stage.build, PowerAction.STOP)).ok
        cold = running.run(a_move(stage.build, "pve1", source="pve2", live=False))
        assert (cold.ok, cold.node) == (True, "pve1")
        assert (had.named, had.untouched()) == (was, True)
        had.given_back()
        stage.end("pve1")


def test_one_that_is_extended_while_its_server_moves_grows_where_that_is_then(
    simulator: RunningSimulator, worker: Worker, cluster: Cluster, tmp_path: Path
) -> None:
    with _running(simulator, tmp_path, SHARED) as running:
        stage = Stage(running, cluster, "shared")
        had = Had(running, cluster, stage.build, "shared")
        simulator.fault(action="migration-slow", seconds=200)
        move = a_move(stage.build, "pve2")
        running.send(move)
        eventually(lambda: "lock" in had.config, 20)
        grown = running.run(volumes.a_growth(had.volume, had.volid, 4, stage.build))
        assert grown.ok, grown
        eventually(lambda: running.conductor.outcomes(move), 30)
        assert running.conductor.outcomes(move)[0].node == "pve2"
        assert "size=4G" in had.named
        # It may also have gone right before the call.
        gone = "Configuration file 'nodes/pve2/qemu-server/9.conf' does not exist"
        simulator.fault(action="fail", method="PUT", path="resize$", status=500, text=gone)
        assert running.run(volumes.a_growth(had.volume, had.volid, 5, stage.build)).ok
        assert "size=5G" in had.named
        had.given_back()
        stage.end("pve2")


@pytest.mark.parametrize("live", [True, False])
def test_a_server_with_a_local_one_stays_untouched(
    simulator: RunningSimulator, worker: Worker, cluster: Cluster, tmp_path: Path, live: bool
) -> None:
    with _running(simulator, tmp_path, SHARED) as running:
        stage = Stage(running, cluster, "shared")
        had = Had(running, cluster, stage.build, "local")
        if not live:
            assert running.run(a_power(stage.build, PowerAction.STOP)).ok
        before = cluster.vm(stage.build.placed.vmid)
        outcome = running.run(a_move(stage.build, "pve2", live=live))
        assert outcome.failure is not None
        assert f"belongs to VM {had.volume.placed.vmid}" in outcome.failure.message
        assert outcome.failure.clean
        assert cluster.vm(stage.build.placed.vmid) == before
        assert not stage.cluster.calls("POST", "/migrate")
        had.given_back()
        stage.end("pve1")
