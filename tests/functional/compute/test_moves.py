"""Whether servers can be migrated: where disks and config drives are put, what is reported."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.messages.commands import Build, PowerAction, Template
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_destroy,
    a_power,
    as_root,
    configuration,
    proxmox_text,
    template_vmid,
)
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually

_SET = ("vm_storage", "iso_storage", "linked_clones")


@contextlib.contextmanager
def _worker(simulator: RunningSimulator, tmp_path: Path, **options: str) -> Iterator[Worker]:
    """A worker with these of the options about storage alone; it looks for pins each second."""
    lines = proxmox_text(simulator).splitlines()
    kept = [line for line in lines if line.partition(" ")[0] not in _SET]
    text = "\n".join([*kept, *(f"{name} = {value}" for name, value in options.items()), ""])
    text = text.replace("content_seconds = 1", "content_seconds = 1\ndetail_seconds = 1")
    worker = Worker(configuration(tmp_path, text))
    worker.start()
    try:
        yield worker
    finally:
        worker.stop()


def _facts(worker: Worker, host: str = "pve1") -> Any:
    return [
        fact for beat in worker.conductor.heartbeats for fact in beat.facts if fact.host == host
    ][-1]


def _built(worker: Worker) -> Build:
    """A server as the conductor orders it: its template is where the host puts root disks."""
    storage = _facts(worker).vm_storage
    build = a_build(template=Template(template_vmid(), "pve1", storage))
    assert worker.run(build).ok
    return build


def _migrate(cluster: Cluster, root: Any, build: Build, target: str, **values: int) -> str:
    vmid = build.placed.vmid
    node = cluster.vm(vmid)["node"]
    upid = root.nodes(node).qemu(vmid).migrate.post(target=target, **values)
    ended: dict[str, Any] = {}

    def done() -> bool:
        ended.update(root.nodes(node).tasks(upid).status.get())
        return ended["status"] == "stopped"

    eventually(done, 30)
    return str(ended["exitstatus"])


def _way(worker: Worker, build: Build) -> str:
    return str(worker.conductor.steps(build)["compute_ensure_image"].detail["way"])


def test_on_shared_storage_a_server_moves_online_and_offline(
    simulator: RunningSimulator, cluster: Cluster, tmp_path: Path
) -> None:
    root = as_root(simulator)
    with _worker(simulator, tmp_path) as worker:
        build = _built(worker)
        config = cluster.vm(build.placed.vmid)["config"]
        assert config["scsi0"].startswith("shared:")
        assert config["ide2"].startswith("shared:iso/")
        assert _way(worker, build) == "linked_clone"
        assert _migrate(cluster, root, build, "pve2", online=1) == "OK"
        assert worker.run(a_power(build, PowerAction.STOP)).ok
        assert _migrate(cluster, root, build, "pve1") == "OK"
        assert str(build.placed.vmid) not in _facts(worker).pinned
        assert worker.run(a_destroy(build)).gone


def test_a_whole_disk_on_local_storage_moves_with_its_server(
    simulator: RunningSimulator, cluster: Cluster, tmp_path: Path
) -> None:
    root = as_root(simulator)
    with _worker(simulator, tmp_path, vm_storage="local") as worker:
        build = _built(worker)
        assert _way(worker, build) == "full_clone"
        assert not _facts(worker).capabilities["linked_clone"]
        assert "base-" not in cluster.vm(build.placed.vmid)["config"]["scsi0"]
        assert worker.run(a_power(build, PowerAction.STOP)).ok
        assert _migrate(cluster, root, build, "pve2") == "OK"
        assert worker.run(a_destroy(build)).gone


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"vm_storage": "local", "linked_clones": "always"},
            "its disk is a linked clone on the node's own storage local",
        ),
        (
            {"vm_storage": "shared", "iso_storage": "local"},
            "its config drive is on the node's own storage local",
        ),
    ],
)
def test_what_stays_is_reported(
    simulator: RunningSimulator,
    cluster: Cluster,
    tmp_path: Path,
    options: dict[str, str],
    reason: str,
) -> None:
    root = as_root(simulator)
    with _worker(simulator, tmp_path, **options) as worker:
        build = _built(worker)
        vmid = str(build.placed.vmid)
        eventually(lambda: _facts(worker).pinned.get(vmid) == reason, 30)
        assert worker.run(a_power(build, PowerAction.STOP)).ok
        assert _migrate(cluster, root, build, "pve2") == "migration aborted"
        assert cluster.vm(build.placed.vmid)["node"] == "pve1"
        assert worker.run(a_destroy(build)).gone
        eventually(lambda: vmid not in _facts(worker).pinned, 30)
