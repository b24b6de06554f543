"""The config drive of a server whose VM is not there any more, or somebody else's."""

from __future__ import annotations

import dataclasses

from tests.functional.compute.conftest import Cluster, Worker, a_build, a_destroy
from tests.functional.compute.reckoning import Reckoning


def test_a_drive_that_is_let_go_of_goes_unless_whatever_is_there_uses_it(
    worker: Worker, cluster: Cluster, reckoning: Reckoning
) -> None:
    build = a_build(template=None)
    assert worker.run(build).ok
    vmid = build.placed.vmid
    reckoning.expect(f"VM {vmid}")  # a stranger's by then
    (drive,) = [one for one in cluster.volumes(vmid) if ":iso/" in one]
    outcome = worker.run(dataclasses.replace(a_destroy(build), drive_only=True))
    assert not outcome.gone
    assert outcome.failure is not None
    name = drive.rpartition("/")[2]
    assert outcome.failure.left == (f"config drive {name}: VM {vmid} on pve1 uses it",)
    assert cluster.vm(vmid)["status"] == "running"
    assert drive in cluster.volumes(vmid)

    shared = worker.hypervisors[0].shared  # type: ignore[attr-defined]
    path = f"nodes/pve1/qemu/{vmid}/config"
    shared.client.post(path, delete="ide2", description="a stranger's")
    disks = cluster.volumes(vmid)
    assert worker.run(dataclasses.replace(a_destroy(build), drive_only=True)).gone
    assert set(cluster.volumes(vmid)) == set(disks) - {drive}
    vm = cluster.vm(vmid)
    assert (vm["status"], vm["config"]["description"]) == ("running", "a stranger's")
    # And once more: nothing is left to remove.
    assert worker.run(dataclasses.replace(a_destroy(build), drive_only=True)).gone
