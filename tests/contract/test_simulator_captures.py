"""The simulator against captures of a real Proxmox VE 9.2: same situation, same call, same answer.

Compared: status, reason phrase, error text and `errors` map, names and types of the body's values,
and for calls that start a task its exit status and log. `LEFT_OUT` says what is not, and why.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

import pytest

from simulator.server import Simulator
from simulator.state.cluster import Cluster
from tests.fixtures import pve_captures as pve
from tests.fixtures import pve_compare as compare
from tests.fixtures import pve_records as records
from tests.fixtures.pve_captures import Answer
from tests.fixtures.pve_records import Capture
from tests.fixtures.pve_situations import (
    LEFT_OUT,
    LOGS_NOT_COMPARED,
    OUTCOME_DIFFERS,
    SITUATIONS,
    VM_ADMIN,
    Situation,
)


@pytest.fixture(scope="module")
def simulators(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, Simulator]]:
    """As the captures were taken on, without the user of the embedded cloud."""
    with pve.simulators(tmp_path_factory) as made:
        for simulator in made.values():
            with simulator.clusters[0].turn():
                simulator.clusters[0].access.users.pop("micronova@pve")
        yield made


def _left_out(name: str) -> str | None:
    return next((why for glob, why in LEFT_OUT.items() if fnmatchcase(name, glob)), None)


COMPARED = [name for name in records.names(1) if _left_out(name) is None]


def _situation(name: str) -> Situation:
    return next(make for glob, make in SITUATIONS if fnmatchcase(name, glob))


def _is_pair(name: str) -> bool:
    return name.startswith(("cluster2.", "no-quorum.", "node2-"))


def _ask(simulator: Simulator, capture: Capture) -> Answer:
    headers, body = pve.headers_for(simulator, capture), capture.body.encode()
    if capture.name.endswith("ticket") and "password" in capture.body:
        body = pve.form(username="root@pam", password=simulator.password)
    target = capture.url
    if capture.upload:
        headers["Content-Type"], body = _upload(capture)
    if "UPID:pve" in target and ":00000001:" not in target:
        target = target.replace(_upid_in(target), _own_task(simulator, capture))
    return pve.send(simulator.endpoints[0]["url"], capture.method, target, headers, body)


def _upload(capture: Capture) -> tuple[str, bytes]:
    fields = capture.upload.get("multipart_fields_in_order") or capture.upload["multipart"]
    pairs = [(key, text) for key, text in dict(fields).items() if key != "filename"]
    name, size = capture.upload["filename"], capture.upload["bytes"]
    content = bytes(size)
    if name.endswith("qcow2") and "not-really" not in capture.name:
        content = pve.qcow2(8388608, size)
    if capture.name.endswith("checksum-ok"):
        digest = hashlib.sha256(content).hexdigest()
        pairs = [(key, digest if key == "checksum" else text) for key, text in pairs]
    return pve.multipart(pairs, name, content)


def _upid_in(target: str) -> str:
    match = re.search(r"UPID:[^/?]+", target)
    assert match is not None
    return match.group()


def _own_task(simulator: Simulator, capture: Capture) -> str:
    """A task of the kind that the captured call asks about."""
    cluster = simulator.clusters[0]
    kind, vmid, user = _upid_in(capture.url).split(":")[5:8]
    url = simulator.endpoints[0]["url"]
    headers = pve.ticket_headers(simulator)
    if user != "root@pam":
        with cluster.turn():
            pve.grant(cluster, VM_ADMIN)
        headers = {"Authorization": f"PVEAPIToken={user}=secret"}
    if kind == "qmcreate":
        running = capture.name.startswith("task.")
        extra = {"scsi0": "local:0,import-from=local:import/big.raw"} if running else {}
        if running:
            simulator.engine.set_speed(5)
        made = pve.send(
            url,
            "POST",
            "/api2/json/nodes/pve1/qemu",
            headers,
            pve.form(vmid=vmid, memory=64, **extra),
        )
    else:
        path = f"/api2/json/nodes/pve1/qemu/{vmid}/status/stop"
        made = pve.send(url, "POST", path, headers)
        running = False
    (compare.begin if running else compare.finish)(cluster, made.body["data"])
    return str(made.body["data"])


@pytest.mark.parametrize("name", COMPARED)
def test_answers_like_the_real_server(name: str, simulators: dict[int, Simulator]) -> None:
    capture = records.load(name)
    assert capture is not None
    simulator = simulators[2 if _is_pair(name) else 1]
    cluster = simulator.clusters[0]
    # A task that runs must still run when the call comes.
    simulator.engine.set_speed(10 if ".running." in name else 2000)
    with cluster.turn():
        pve.clear(cluster)
        _situation(name)(cluster)
        pve.keep_snapshots(cluster)
    _before(simulator, capture)
    answer = _ask(simulator, capture)
    compare.answers(answer, capture)
    if capture.exitstatus is not None and str(capture.answer["data"]).startswith("UPID:"):
        _same_task(cluster, str(answer.body["data"]), capture)


def _before(simulator: Simulator, capture: Capture) -> None:
    """Calls that must be under way, or over, before the captured one is made."""
    url, headers = simulator.endpoints[0]["url"], pve.ticket_headers(simulator)
    cluster = simulator.clusters[0]
    with cluster.turn():
        no_tasks = not cluster.tasks.tasks
    creating = capture.name.startswith("task.running") and capture.name not in (
        "task.running.create",
        "task.running.status",
        "task.running.log",
    )
    if creating or capture.name in (
        "nodes.tasks.active",
        "qemu.create.start-1.bridge-missing.tasks",
    ):
        slow = creating or capture.name == "nodes.tasks.active"
        if slow:
            # What waits for a lock gives up after ten seconds of the simulator's, in which the
            # first task must not end: they must not be too short.
            simulator.engine.set_speed(8)
        vmid, extra = (105, {"scsi0": "local:0,import-from=local:import/big.raw"})
        if not slow:
            vmid, extra = 106, {"memory": "64"}
        made = pve.send(
            url, "POST", "/api2/json/nodes/pve1/qemu", headers, pve.form(vmid=vmid, **extra)
        )
        if not slow:
            compare.finish(cluster, made.body["data"])
    elif capture.name in ("nodes.tasks", "cluster.tasks", "cluster2.cluster.tasks") and no_tasks:
        made = pve.send(
            url, "POST", "/api2/json/nodes/pve1/qemu", headers, pve.form(vmid=120, memory=64)
        )
        compare.finish(cluster, made.body["data"])
    if capture.name == "perm.pvevmadmin-on-vms.tasks.list":
        token = {"Authorization": "PVEAPIToken=ci@pve!t0=secret"}
        made = pve.send(
            url, "POST", "/api2/json/nodes/pve1/qemu", token, pve.form(vmid=300, memory=64)
        )
        compare.finish(cluster, made.body["data"])
    if capture.url.startswith("/api2/json/cluster/resources") or capture.name == "pools.get-one":
        fresh = "just-after" not in capture.name and capture.name != "pools.get-one"
        with cluster.turn():
            cluster.stats_at = float("-inf") if fresh else float("inf")


def _same_task(cluster: Cluster, upid: str, capture: Capture) -> None:
    task = compare.finish(cluster, upid)
    mine, real = urlsplit(capture.url).path, capture.answer["data"].split(":")[5:8]
    assert task.upid.split(":")[5:8] == real, mine
    if capture.name in OUTCOME_DIFFERS:
        return
    assert pve.steady(task.exitstatus) == pve.steady(capture.exitstatus or "")
    if capture.name not in LOGS_NOT_COMPARED:
        assert compare.comparable(task.log) == compare.comparable(capture.log)


def test_every_capture_is_compared_or_left_out_for_a_reason() -> None:
    unknown = [
        glob for glob in LEFT_OUT if not any(fnmatchcase(n, glob) for n in records.names(1))
    ]
    assert unknown == []
    assert len(COMPARED) > 330
