"""A server with a CD on its node's own storage is moved: the target has the same file, or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from common.messages.commands import PowerAction
from tests.functional.compute.conftest import Cluster, Worker, a_move, a_power, as_root
from tests.functional.compute.test_move import LOCAL, MIGRATE, SHARED, Stage, _running
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually


@pytest.fixture(params=[LOCAL, SHARED], ids=["local", "shared"])
def stage(
    request: pytest.FixtureRequest,
    simulator: RunningSimulator,
    worker: Worker,
    cluster: Cluster,
    tmp_path: Path,
) -> Iterator[Stage]:
    with _running(simulator, tmp_path, request.param) as running:
        yield Stage(running, cluster, request.param["vm_storage"])


class Disc:
    """An ISO image, by default on the source's own storage, that the stage's server has as CD."""

    VOLID = "local:iso/install.iso"

    def __init__(self, stage: Stage, simulator: RunningSimulator) -> None:
        self._stage, self._simulator = stage, simulator
        self.copy_to("pve1")
        vm = as_root(simulator).nodes("pve1").qemu(stage.build.placed.vmid)
        assert stage.worker.run(a_power(stage.build, PowerAction.STOP)).ok
        vm.config.post(ide0=f"{self.VOLID},media=cdrom")
        eventually(lambda: self.inserted == self.VOLID, 30)

    def copy_to(self, node: str, size: int = 1 << 20) -> None:
        body = {"volid": self.VOLID, "size": size, "used": size, "node": node}
        self._simulator.control("POST", "volume", body)

    @property
    def inserted(self) -> str:
        return str(self._stage.vm["config"].get("ide0", "")).split(",", 1)[0]

    @property
    def noted(self) -> bool:
        return "ejected" in self._stage.vm["config"]["description"]


@pytest.fixture
def disc(stage: Stage, simulator: RunningSimulator) -> Disc:
    return Disc(stage, simulator)


@pytest.mark.parametrize("live", [True, False])
def test_a_cd_that_the_target_has_is_ejected_and_inserted_there(
    stage: Stage, disc: Disc, live: bool
) -> None:
    disc.copy_to("pve2")
    if live:
        assert stage.worker.run(a_power(stage.build, PowerAction.START)).ok
    move = a_move(stage.build, "pve2", live=live)
    outcome = stage.worker.run(move)
    assert (outcome.failure, outcome.node) == (None, "pve2")
    assert (disc.inserted, disc.noted) == (disc.VOLID, False)
    back = a_move(stage.build, "pve1", source="pve2", live=live)
    assert stage.worker.run(back).node == "pve1"
    assert (disc.inserted, disc.noted) == (disc.VOLID, False)
    stage.end("pve1")


@pytest.mark.parametrize("size", [None, 3 << 20])
def test_a_cd_that_the_target_has_not_got_is_refused_untouched(
    stage: Stage, disc: Disc, size: int | None
) -> None:
    if size is not None:
        disc.copy_to("pve2", size)
    digest = stage.vm["digest"]
    outcome = stage.worker.run(a_move(stage.build, "pve2", live=False))
    assert outcome.failure is not None
    assert "node pve2 has no such file of the same size" in outcome.failure.message
    assert (outcome.node, stage.vm["digest"]) == ("pve1", digest)
    assert not stage.cluster.calls("POST", "/migrate")
    stage.end("pve1")


def test_a_cd_is_back_after_a_failed_move(
    stage: Stage, disc: Disc, simulator: RunningSimulator
) -> None:
    disc.copy_to("pve2")
    simulator.fault(action="fail", method="POST", path=MIGRATE, status=500)
    outcome = stage.worker.run(a_move(stage.build, "pve2", live=False))
    assert (outcome.ok, outcome.node) == (False, "pve1")
    assert (disc.inserted, disc.noted) == (disc.VOLID, False)
    stage.end("pve1")


def test_a_cd_that_was_ejected_by_a_move_that_was_interrupted(
    stage: Stage, disc: Disc, simulator: RunningSimulator
) -> None:
    disc.copy_to("pve2")
    note = f'micronova: ejected={{"ide0":"{disc.VOLID},media=cdrom"}}'
    described = f"{stage.vm['config']['description']}\n{note}"
    vm = as_root(simulator).nodes("pve1").qemu(stage.build.placed.vmid)
    vm.config.post(ide0="none,media=cdrom", description=described)
    eventually(lambda: disc.noted, 30)
    outcome = stage.worker.run(a_move(stage.build, "pve2", live=False))
    assert (outcome.failure, outcome.node) == (None, "pve2")
    assert (disc.inserted, disc.noted) == (disc.VOLID, False)
    stage.end("pve2")


def test_a_cd_that_somebody_ejected_stays_out(
    stage: Stage, disc: Disc, simulator: RunningSimulator
) -> None:
    vm = as_root(simulator).nodes("pve1").qemu(stage.build.placed.vmid)
    vm.config.post(ide0="none,media=cdrom")
    eventually(lambda: disc.inserted == "none", 30)
    outcome = stage.worker.run(a_move(stage.build, "pve2", live=False))
    assert (outcome.failure, outcome.node, disc.inserted) == (None, "pve2", "none")
    stage.end("pve2")
