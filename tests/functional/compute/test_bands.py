"""Two clouds and a person on one cluster: each has ids of its own, and none hurts the others."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import proxmoxer
import pytest

from common.messages.commands import Build, Placed, PowerAction, Template
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_destroy,
    a_growth,
    a_plug,
    a_power,
    a_removal,
    a_swap,
    a_volume,
    an_attachment,
    configuration,
    proxmox_text,
)
from tests.functional.simulator_fixture import RunningSimulator

SERVERS = 4


@pytest.fixture
def south(simulator: RunningSimulator, worker: Worker, tmp_path: Path) -> Iterator[Worker]:
    """The workers of another cloud, with a band of its own."""
    band = {"vmid_low": "300000", "vmid_high": "309999"}
    running = Worker(configuration(tmp_path, proxmox_text(simulator, **band)))
    running.start()
    yield running
    running.stop()


class Person:
    """Clicks in the web interface: takes the id that it proposes, and makes and removes VMs."""

    def __init__(self, simulator: RunningSimulator, worker: Worker) -> None:
        settings = worker.hypervisors[0].shared.settings  # type: ignore[attr-defined]
        host, port = settings.endpoints[0]
        self.api = proxmoxer.ProxmoxAPI(
            host,
            port=port,
            user="root@pam",
            password=(simulator.state_dir / "root-password").read_text(),
            verify_ssl=str(simulator.ca_file),
        )
        self._tasks = worker.hypervisors[0].shared.tasks  # type: ignore[attr-defined]
        self.kept: list[int] = []
        self.problems: list[str] = []

    def work(self) -> None:
        """Copies our names and tags, as templates of people do; removes every other one."""
        for number in range(2 * SERVERS):
            try:
                vmid = int(self.api.cluster.nextid.get())
                node = self.api.nodes("pve1")
                values = {"name": f"web{number}", "tags": "micronova", "scsi0": "local:1"}
                self._wait(node.qemu.post(vmid=vmid, memory=64, **values))
                if number % 2:
                    self._wait(node.qemu(vmid).delete(purge=1))
                else:
                    self.kept.append(vmid)
            except proxmoxer.ResourceException as error:
                self.problems.append(str(error))

    def _wait(self, upid: str) -> None:
        class Patient:
            def check_time(self) -> None:
                pass

        self._tasks.wait(Patient(), upid)


def builds(first: int, template: int, cloud: str) -> list[Build]:
    found = []
    for number in range(SERVERS):
        build = a_build(template=Template(template, "pve1", "local"), cloud=cloud)
        placed = Placed("pve1", "c1", "pve1", first + number)
        found.append(dataclasses.replace(build, placed=placed))
    return found


def test_two_clouds_and_a_person_never_hurt_each_other(
    worker: Worker, south: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    person = Person(simulator, worker)
    clicking = threading.Thread(target=person.work)
    clouds: list[tuple[Worker, list[Build]]] = [
        (worker, builds(150_000, 190_900, "north")),
        (south, builds(300_000, 309_000, "south")),
    ]
    clicking.start()
    for cloud, wanted in clouds:
        for build in wanted:
            cloud.send(build)
    for cloud, wanted in clouds:
        for build in wanted:
            assert ended(cloud, build).ok
    clicking.join(60)
    assert person.problems == []
    before = {vmid: cluster.vm(vmid) for vmid in [*person.kept, 190_900, 309_000]}
    others = {build.placed.vmid: cluster.vm(build.placed.vmid) for build in clouds[1][1]}
    assert all(before.values())
    for build in clouds[0][1]:
        assert worker.run(a_destroy(build)).gone
        assert cluster.is_empty(build.placed.vmid)
    # What one cloud removes is its own, and nothing else changed.
    assert {vmid: cluster.vm(vmid) for vmid in before} == before
    assert {vmid: cluster.vm(vmid) for vmid in others} == others
    # A command that is wrong, or forged, touches nothing either.
    for vmid in (*person.kept, *others, 309_000):
        stray = dataclasses.replace(clouds[0][1][0], placed=Placed("pve1", "c1", "pve1", vmid))
        assert not worker.run(a_destroy(stray)).gone
        assert not worker.run(dataclasses.replace(stray, operation_id=10**9 + vmid)).ok
    assert {vmid: cluster.vm(vmid) for vmid in before} == before
    assert {vmid: cluster.vm(vmid) for vmid in others} == others


def ended(cloud: Worker, build: Build) -> Any:
    return cloud.conductor.wait_for(lambda: cloud.conductor.outcomes(build) or None)[0]


def test_a_command_of_another_cloud_touches_nothing(worker: Worker, cluster: Cluster) -> None:
    """Whatever else agrees: the cloud in the marks decides."""
    build, volume = a_build(cloud="north"), a_volume(cloud="north")
    assert worker.run(build).ok
    made = worker.run(volume).volume
    assert made is not None
    vmids = (build.placed.vmid, volume.placed.vmid)
    before = [cluster.vm(vmid) for vmid in vmids]
    south = dataclasses.replace(build, cloud="south")
    theirs = dataclasses.replace(volume, cloud="south")
    nic = dataclasses.replace(build.nics[0], mac="fa:16:3e:00:00:77")
    for wrong in (
        a_destroy(south),
        a_power(south, PowerAction.STOP),
        a_growth(south, 9),
        a_plug(south, nic),
        a_swap(south),
        dataclasses.replace(a_removal(theirs, made.volid), cloud="south"),
        an_attachment(south, theirs, made.volid, cloud="south"),
    ):
        outcome = worker.run(wrong)
        assert not outcome.ok, wrong
        assert not getattr(outcome, "gone", False), wrong
        assert [cluster.vm(vmid) for vmid in vmids] == before, wrong
