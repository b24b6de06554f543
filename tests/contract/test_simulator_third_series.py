"""The simulator against the third series of captures: LVM-thin and btrfs, call after call.

The calls were made one after the other, each on what those before it had left. Here they are made
again in that order, and each answer, and the end and log of each task, is compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import pytest

from simulator.server import Simulator
from simulator.state.cluster import Cluster
from simulator.state.model import GIB, MIB, Storage, Vm, Volume
from tests.fixtures import pve_captures as pve
from tests.fixtures import pve_compare as compare
from tests.fixtures import pve_records as records
from tests.fixtures.pve_records import Capture

SERIES = 3
PAGE = 50
_TOOLS = re.compile(r"^  Logical volume |records (in|out)$|bytes .* copied")
#: each after the one before, for both types
_ORDER = """
storage.status storage.config content.empty-or-not create.import-from-qcow2 create.config
create.err.format-qcow2 volume.alloc volume.alloc.err.exists volume.alloc.other-name
volume.alloc.name-of-other-vmid volume.alloc.err.format-qcow2 volume.alloc.larger-than-pool
volume.get volume.get.err.missing content.after attach.stopped resize resize.odd-size resize.config
feature.snapshot feature.clone feature.copy snapshot.create.s1 snapshot.create.s2
content.with-snapshots snapshot.rollback.not-newest snapshot.resize-with
snapshot.rollback.after-resize snapshot.rollback.after-resize.config snapshot.move-to-dir
snapshot.clone-from-snap.full snapshot.clone-from-snap.linked snapshot.delete.s1
snapshot.delete.s2 move.to-dir move.back move.same-storage template template.config
template.content clone.linked clone.linked.config clone.linked.content clone.full
clone.full.to-dir template.delete.with-linked-clone template.after-failed-delete.config
clone.linked.migrate.precheck clone.linked.migrate.offline delete.0 delete.1 delete.2 delete.3
delete.4 delete.6 content.leftovers
"""
ORDER = _ORDER.split()
#: not compared, and why
LEFT_OUT = {
    "*.volume.free.err.in-snapshot": "has a situation of its own, below",
}
#: volumes of what was done before the series
LEFTOVERS = ("thin:base-100032-disk-0", "thin:base-100039-disk-0")
KINDS = ("lvmthin", "btrfs")


def lay_out(cluster: Cluster) -> None:
    nodes = {name.replace("pve", "n"): node for name, node in cluster.nodes.items()}
    for name, node in nodes.items():
        node.name, node.ip = name, f"10.77.0.{node.nodeid}"
    cluster.nodes = nodes
    vg = {"vgname": "benchvg", "thinpool": "data"}
    content = ["images", "rootdir"]
    cluster.storages["thin"] = Storage(
        "thin", "lvmthin", "", content, False, 20_401_094_656, options=vg
    )
    content = ["images", "import", "iso", "backup", "snippets"]
    cluster.storages["bt"] = Storage("bt", "btrfs", "/mnt/bt", content, False, 8 * GIB, ["n1"])
    image = "import/blank.qcow2"
    cluster.add_volume(
        Volume("local", "n1", image, "import", "qcow2", MIB, MIB, virtual_size=64 * MIB)
    )
    for volid in LEFTOVERS:
        name = volid.removeprefix("thin:")
        vmid = int(name.split("-")[1])
        cluster.add_volume(Volume("thin", "n1", name, "images", "raw", 64 * MIB, MIB, vmid))
    root = cluster.access.users["root@pam"]
    root.tokens["cap"] = pve.Token("cap", "secret", privsep=False)


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    with pve.simulators(tmp_path_factory) as made:
        simulator = made[2]
        with simulator.clusters[0].turn():
            pve.clear(simulator.clusters[0])
            lay_out(simulator.clusters[0])
        yield simulator


def ask(simulator: Simulator, capture: Capture) -> pve.Answer:
    return pve.send(
        simulator.endpoints[0]["url"],
        capture.method,
        capture.url,
        pve.headers_for(simulator, capture),
        capture.body.encode(),
    )


def differences(simulator: Simulator, capture: Capture) -> str:
    """What the simulator answers otherwise; empty: nothing."""
    answer = ask(simulator, capture)
    try:
        compare.answers(answer, capture)
        assert values(answer.body) == values(capture.answer)
        if capture.exitstatus is not None:
            task = compare.finish(simulator.clusters[0], str(answer.body["data"]))
            assert pve.steady(task.exitstatus) == pve.steady(capture.exitstatus)
            theirs = comparable(capture.log)
            # The server shows fifty lines at once.
            whole = len(theirs) if len(capture.log) == PAGE else None
            assert comparable(task.log)[:whole] == theirs
    except AssertionError as error:
        return str(error)
    return ""


def comparable(log: list[str]) -> list[str]:
    """The lines of a log without those of LVM's tools and of dd, whose numbers are the host's."""
    return [line for line in compare.comparable(log) if not _TOOLS.search(line)]


def values(body: Any) -> Any:
    """Of lists of volumes, and of configurations, what does not differ from run to run."""
    data = body.get("data") if isinstance(body, dict) else None
    if isinstance(data, list):
        return sorted((one["volid"], one["size"], type(one.get("ctime"))) for one in data)
    if isinstance(data, dict):
        return {key: text for key, text in data.items() if key.startswith(("scsi", "unused"))}
    return data if isinstance(data, str) and ":" in data[:5] and "UPID" not in data else None


@pytest.fixture(scope="module")
def found(simulator: Simulator) -> Mapping[str, str]:
    """Capture → how the simulator's answer differs."""
    made = {}
    for kind in KINDS:
        for name in (f"{kind}.{one}" for one in ORDER):
            capture = records.load(name, SERIES)
            assert capture is not None
            made[name] = differences(simulator, capture)
    return made


@pytest.mark.parametrize("name", [f"{kind}.{one}" for kind in KINDS for one in ORDER])
def test_answers_like_the_real_server(name: str, found: Mapping[str, str]) -> None:
    assert found[name] == ""


def test_every_capture_is_compared() -> None:
    known = {one for one in records.names(SERIES) if one.startswith(KINDS)}
    rest = known - {f"{kind}.{one}" for kind in KINDS for one in ORDER}
    assert [one for one in rest if not any(fnmatchcase(one, glob) for glob in LEFT_OUT)] == []


def test_deleting_a_volume_takes_its_snapshots_along_and_leaves_the_vms_undeletable(
    simulator: Simulator,
) -> None:
    cluster = simulator.clusters[0]
    with cluster.turn():
        pve.clear(cluster)
        lay_out(cluster)
        disk = cluster.add_volume(
            Volume("thin", "n1", "vm-900-data-0", "images", "raw", GIB, MIB, 900)
        )
        vm = cluster.add_vm(Vm(900, "n1", {"scsi1": f"{disk.volid},size=1G"}))
        for name in ("s1", "s2"):
            pve.snapshot(vm, name)
            disk.kept[name] = ""
    capture = records.load("lvmthin.volume.free.err.in-snapshot", SERIES)
    assert capture is not None
    assert differences(simulator, capture) == ""
    base = f"{simulator.endpoints[0]['url']}"
    headers = pve.ticket_headers(simulator)
    for name, force, end in (
        ("s1", "", "lvremove snapshot 'benchvg/snap_vm-900-data-0_s1' error"),
        ("s2", "", "VM is locked (snapshot-delete)"),
    ):
        path = f"/api2/json/nodes/n1/qemu/900/snapshot/{name}{force}"
        task = compare.finish(cluster, pve.send(base, "DELETE", path, headers).body["data"])
        assert task.exitstatus.startswith(end)
    with cluster.turn():
        assert cluster.vms[900].lock == "snapshot-delete"
