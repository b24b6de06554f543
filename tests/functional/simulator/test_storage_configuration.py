"""Storages that are added, changed and removed over the API; what lies on them outlives that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simulator.server import Options, Simulator
from tests.functional.simulator.conftest import Lab, connect, refusal

NEW: dict[str, dict[str, Any]] = {
    "dir": {"path": "/srv/data/"},
    "btrfs": {"path": "/mnt/data"},
    "nfs": {"path": "/mnt/pve/data", "server": "10.0.0.2", "export": "/x"},
    "cifs": {"path": "/mnt/pve/data", "server": "10.0.0.2", "share": "x", "password": "s"},
    "lvm": {"vgname": "vg", "snapshot-as-volume-chain": 1, "shared": 1},
    "lvmthin": {"vgname": "vg", "thinpool": "data"},
    "zfspool": {"pool": "rpool/data", "sparse": 1},
    "rbd": {"pool": "ceph", "krbd": 0},
}


@pytest.fixture
def root(lab: Lab) -> Any:
    return connect(lab.simulator, user="root@pam", password=lab.simulator.password)


@pytest.mark.parametrize("kind", NEW)
def test_added_used_changed_and_removed(lab: Lab, root: Any, kind: str) -> None:
    given = {"type": kind, "content": "images", **NEW[kind]}
    assert root.storage.post(storage="data", **given) == {"storage": "data", "type": kind}
    shown = root.storage("data").get()
    assert {"type": kind, "content": "images", "storage": "data"}.items() <= shown.items()
    assert "password" not in shown
    assert bool(shown.get("shared")) == (kind in ("nfs", "cifs", "rbd", "lvm"))
    assert lab.create(100, scsi0="data:1") == "OK"
    volumes = lab.volumes(100)

    assert root.storage("data").put(nodes="pve1,pve2", disable=1)["type"] == kind
    status, text = refusal(root.nodes("pve1").storage("data").content.get)
    assert (status, text) == (500, "storage 'data' is disabled")
    root.storage("data").put(delete="disable,nodes")
    assert "nodes" not in root.storage("data").get()

    root.storage("data").delete()
    assert refusal(lambda: root.storage("data").get()) == (500, "storage 'data' does not exist")
    root.storage.post(storage="data", **given)
    found = root.nodes("pve1").storage("data").content.get()
    assert [one["volid"] for one in found] == volumes


@pytest.mark.parametrize(
    ("given", "status", "text"),
    [
        ({"type": "lvmthin", "vgname": "vg"}, 500, "missing value for required option 'thinpool'"),
        ({"type": "rbd", "vgname": "vg"}, 500, "unexpected property 'vgname'"),
        ({"type": "dir", "path": "srv"}, 400, "Parameter verification failed."),
        ({"type": "dir", "path": "/s v"}, 500, "illegal path for directory storage: /s v"),
        ({"type": "nope"}, 400, "Parameter verification failed."),
        ({"type": "lvm", "vgname": "v g"}, 400, "Parameter verification failed."),
        (
            {"type": "lvmthin", "vgname": "vg", "thinpool": "tp", "content": "iso"},
            500,
            "storage does not support content type 'none'",
        ),
        (
            {"type": "dir", "path": "/s", "content": "none,images"},
            500,
            "unable to combine 'none' with other content types",
        ),
        (
            {"storage": "shared", "type": "dir", "path": "/s"},
            500,
            "create storage failed: storage ID 'shared' already defined",
        ),
    ],
)
def test_refused(root: Any, given: dict[str, Any], status: int, text: str) -> None:
    before = [one["storage"] for one in root.storage.get()]
    assert refusal(lambda: root.storage.post(**{"storage": "data", **given})) == (status, text)
    assert [one["storage"] for one in root.storage.get()] == before


def test_changes_that_are_refused(lab: Lab, root: Any) -> None:
    root.storage.post(storage="data", type="lvm", **NEW["lvm"])
    root.storage.post(storage="files", type="nfs", **NEW["nfs"])
    data, files = root.storage("data"), root.storage("files")
    prefix = "update storage failed: "
    for call, text in (
        (lambda: data.put(delete="vgname"), "unable to delete required option 'vgname'"),
        (lambda: data.put(delete="krbd"), "no such option 'krbd'"),
        (lambda: data.put(krbd=1), "unexpected property 'krbd'"),
        (lambda: data.put(digest="0" * 40, nodes="pve1"), "detected modified configuration"),
        (
            lambda: files.put(**{"snapshot-as-volume-chain": 1}),
            "can't change value of fixed parameter 'snapshot-as-volume-chain'",
        ),
        (lambda: root.storage("gone").put(nodes="pve1"), "storage 'gone' does not exist"),
    ):
        status, answer = refusal(call)
        assert (status, answer.startswith(f"{prefix}{text}")) == (500, True), answer
    assert refusal(lambda: root.storage("gone").delete())[1] == (
        "delete storage failed: storage 'gone' does not exist"
    )
    assert lab.create(100, scsi0="data:1") == "OK"
    ends = refusal(lambda: data.put(delete="snapshot-as-volume-chain"))[1]
    assert ends.endswith("cannot disable 'snapshot-as-volume-chain' while a qcow2 image exists")
    assert data.get()["snapshot-as-volume-chain"] == 1


def test_the_agents_token_adds_none(lab: Lab) -> None:
    given = {"storage": "data", "type": "dir", "path": "/s"}
    access = lab.simulator.clusters[0].access
    access.roles["Micronova"] -= {"Datastore.Allocate"}
    access.changed()
    text = "Permission check failed (/storage, Datastore.Allocate)"
    assert refusal(lambda: lab.api.storage.post(**given)) == (403, text)
    assert refusal(lambda: lab.api.storage("shared").delete()) == (403, text)


def test_a_new_storage_outlives_the_simulator(tmp_path: Path) -> None:
    options, shown = Options(tmp_path / "state", tls=True), []
    for first in (True, False):
        with Simulator(options) as simulator:
            api = connect(simulator, user="root@pam", password=simulator.password)
            if first:
                api.storage.post(storage="data", type="lvm", **NEW["lvm"])
            shown.append(api.storage("data").get())
    assert shown[0] == shown[1]
