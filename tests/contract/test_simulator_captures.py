"""The simulator against captures of a real Proxmox VE 9.2: same situation, same call, same answer.

Compared: status, reason phrase, error text and `errors` map, names and types of the body's values,
and for calls that start a task its exit status and log. `LEFT_OUT` says what is not, and why.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from simulator.cluster import Cluster
from simulator.server import Options, Simulator
from tests.fixtures import pve_captures as pve
from tests.fixtures.pve_captures import Answer, Capture

pytestmark = pytest.mark.skipif(
    not pve.CAPTURES.is_dir(), reason="no captures beside the repository"
)

LEFT_OUT = {
    "agent.exec*": "commands in a guest are not simulated",
    "agent.file-*": "files in a guest are not simulated",
    "agent.get-[!h]*": "of the guest's facts only host name and addresses are simulated",
    "agent.info": "of the guest's facts only host name and addresses are simulated",
    "agent.ping.while-booting.*": "three calls in one file; see the functional tests",
    "err.agent.file-read.missing": "files in a guest are not simulated",
    "nodes.capabilities.machines": "machine types are not simulated",
    "nodes.dns": "the node's resolver is not simulated",
    "nodes.rrddata": "round-robin data is not simulated",
    "nodes.time": "the captured host had no time daemon",
    "parallel.*": "several calls in one file; see the functional tests",
    "qemu.cloudinit.dump.user": "the text of cloud-init files is not simulated",
    "storage.import-metadata.qcow2": "import metadata is not simulated",
    "vzdump.stop-mode": "backups are not simulated",
    "*.kvm-unusable*": "the captured host had no KVM; simulated nodes have it",
    "interrupted-create.DELETE.start": "the captured host had no KVM; simulated nodes have it",
    "err.qemu.create.import-from.not-a-qcow2": "a bad image never gets into the storage",
    "cluster2.cluster.nextid": "depends on ids that are not in the captures",
    "cluster.resources*just-after-boot": "simulated nodes have statistics from the start",
}
# Bodies whose names differ for a reason: statistics that depend on the host.
LOOSE_KEYS = {
    "saved",
    "idle_time_ns",
    "priority",
    "boot-info",
    "cpuinfo",
    "swap",
    "secureboot",
    "exists",
    "address",
    "cidr",
    "netmask",
    "freeze",
    "level",
    "repoid",
    "export",
    "server",
    "propagate",
    "running-nets-host-mtu",
}
LOGS_NOT_COMPARED = {
    "cluster2.migrate.offline": "lines of dd and qemu-img",
    "running.clone.full": "the lines of a block mirror",
    "err.storage.download-url.unreachable": "the captured host had no wget",
    "err.qemu.create.disk-larger-than-storage": "",
    "lock.suspended.start": "",
}

Situation = Callable[[Cluster], object]


def _base(cluster: Cluster, **changes: str | None) -> Any:
    return pve.add_vm(cluster, 100, **changes)


def _locked(lock: str) -> Situation:
    return lambda c: _base(c, lock=lock, tags="a;b", description="hello")


def _template(c: Cluster) -> object:
    return pve.template(c)


def _both(c: Cluster) -> object:
    return _base(c, tags="ci;managed"), pve.template(c)


def _family(c: Cluster) -> object:
    return pve.run(_base(c, tags="ci;managed")), pve.template(c), pve.linked(c)


def _orphans(c: Cluster) -> None:
    pve.orphan(c, "200/vm-200-disk-0.qcow2")
    pve.orphan(c, "200/vm-200-cloudinit.qcow2")


def _running_160(c: Cluster) -> Any:
    vm = pve.plain(
        c,
        160,
        name="bk",
        boot="order=scsi0;net0",
        scsi0="local:160/vm-160-disk-0.qcow2,size=96M",
        net0="virtio=BC:24:11:F3:B6:A1,bridge=vmbr0",
    )
    return pve.run(vm)


def _guest(c: Cluster) -> Any:
    return pve.run(pve.add_vm(c, 120, name="guest1"), agent=True)


def _pending(c: Cluster) -> None:
    _running_160(c).pending["memory"] = "128"


def _snapshots(c: Cluster) -> Any:
    vm = pve.run(_base(c))
    pve.snapshot(vm, "s1")
    pve.snapshot(vm, "s1ram", "s1", "local:100/vm-100-state-s1ram.raw")
    return vm


def _no_quorum(c: Cluster) -> None:
    _base(c)
    pve.template(c)
    c.nodes["pve2"].up = False


def _down(what: str, state: str) -> Situation:
    def arrange(c: Cluster) -> None:
        _base(c)
        setattr(c.nodes["pve1"], what, state)

    return arrange


def _peer(what: str, state: object) -> Situation:
    return lambda c: setattr(c.nodes["pve2"], what, state)


def _granted(*grants: tuple[str, str]) -> Situation:
    def arrange(c: Cluster) -> None:
        pve.grant(c, *grants)

    return arrange


_VMADMIN = ("/vms", "PVEVMAdmin")
_DATASTORE = ("/storage/local", "PVEDatastoreUser")
_SDN = ("/sdn/zones/localnetwork", "PVESDNUser")


def _cluster2(c: Cluster) -> None:
    if len(c.nodes) == 2:
        _base(c)
        pve.template(c)


def _on_node2(c: Cluster) -> Any:
    return pve.add_vm(c, 210, "pve2", name="on2", ide2=None, agent=None, serial0=None, vga=None)


def _unused(c: Cluster) -> None:
    _base(c, unused0="local:100/vm-100-disk-1.qcow2")
    pve.orphan(c, "100/vm-100-disk-1.qcow2")


def _with_disk(c: Cluster) -> None:
    _base(c, scsi1="local:100/vm-100-disk-1.qcow2,size=1G")
    pve.orphan(c, "100/vm-100-disk-1.qcow2")


def _nothing(_c: Cluster) -> None:
    return None


# The first pattern that matches a capture's name says in what situation the call was made.
SITUATIONS: tuple[tuple[str, Situation], ...] = (
    ("access.permissions.t0", _granted(_VMADMIN, _DATASTORE, _SDN)),
    ("access.acl", _granted(_VMADMIN, _DATASTORE, _SDN)),
    ("access.user.create", lambda c: c.access.users.pop("ci@pve")),
    ("access.token.create", lambda c: c.access.users["root@pam"].tokens.clear()),
    ("access.token.create.privsep", lambda c: c.access.users["ci@pve"].tokens.clear()),
    ("agent.network-get-interfaces", lambda c: pve.run(_base(c), agent=True)),
    ("agent.*", _guest),
    ("cluster.nextid", lambda c: [pve.plain(c, vmid) for vmid in range(100, 104)]),
    ("cluster.nextid.free", _base),
    ("cluster.options", lambda c: (_base(c, tags="ci;managed"), c.options.update(description=""))),
    ("cluster.resources.empty", _nothing),
    ("cluster.resources.type-vm.running", lambda c: pve.run(_base(c))),
    ("cluster.resources*", _family),
    ("cluster2.start.on-node2", _on_node2),
    ("cluster2.status.on-node2", lambda c: pve.run(_on_node2(c))),
    ("cluster2.cluster.resources*", lambda c: (_cluster2(c), _on_node2(c))),
    ("cluster2.*", _cluster2),
    ("err.agent.network-get-interfaces.booting", lambda c: pve.add_vm(c, 120)),
    ("err.qemu.agent.ping.stopped", lambda c: pve.run(_base(c))),
    ("err.pool.delete.not-empty", lambda c: (pve.plain(c, 163), pve.pool(c, 163))),
    ("err.qemu.delete.protected", lambda c: pve.plain(c, 104, protection="1")),
    ("err.qemu.delete.running", lambda c: pve.run(pve.plain(c, 104))),
    ("err.qemu.delete.template*", lambda c: (pve.template(c), pve.linked(c))),
    ("err.qemu.*.no-acpi-guest", lambda c: pve.run(_base(c, acpi="0"))),
    ("err.qemu.shutdown*", lambda c: pve.run(_base(c, acpi="0"))),
    ("err.qemu.snapshot.exists", lambda c: pve.snapshot(pve.run(_base(c)), "s1")),
    ("err.qemu.start.already-running", lambda c: pve.run(_base(c))),
    (
        "err.qemu.start.bridge-missing",
        lambda c: pve.plain(c, 106, net0="virtio=BC:24:11:36:DA:2E,bridge=vmbr9"),
    ),
    ("err.running.template", _running_160),
    ("err.resize*", _running_160),
    ("err.storage.content.alloc.exists", lambda c: pve.orphan(c, "320/vm-320-disk-0.qcow2")),
    ("exists.*", _both),
    ("err.qemu.*", _both),
    ("err.*", _both),
    ("interrupted-create.SIGKILL.delete-after-unlock", lambda c: pve.plain(c, 105)),
    (
        "interrupted-create.SIGKILL.*",
        lambda c: (
            c.add_vm(pve.Vm(105, "pve1", {"lock": "create"})),
            pve.orphan(c, "105/vm-105-cloudinit.qcow2"),
            pve.orphan(c, "105/vm-105-disk-0.qcow2"),
        ),
    ),
    ("interrupted-create.DELETE.delete", lambda c: pve.plain(c, 105)),
    ("lock.set-via-config-put", _base),
    ("lock.snapshot.stop.skiplock-root", lambda c: pve.run(_base(c, lock="snapshot"))),
    ("lock.snapshot-delete.*", _locked("snapshot-delete")),
    ("lock.backup.*", _locked("backup")),
    ("lock.clone.*", _locked("clone")),
    ("lock.create.delete.skiplock.ticket-of-root", lambda c: pve.plain(c, 151, lock="create")),
    ("lock.create.*", _locked("create")),
    ("lock.migrate.*", _locked("migrate")),
    ("lock.rollback.*", _locked("rollback")),
    ("lock.suspended.*", _locked("suspended")),
    ("lock.suspending.*", _locked("suspending")),
    ("no-quorum.*", _no_quorum),
    ("node2-dead.*", _peer("up", False)),
    ("node2-proxy-down.*", _peer("proxy", "down")),
    ("nodes.qemu.*", _family),
    ("orphan.config-put.*", lambda c: (pve.plain(c, 200), _orphans(c))),
    (
        "orphan.create.disk0-exists.config",
        lambda c: pve.plain(
            c, 200, name="orph", boot="order=scsi0", scsi0="local:200/vm-200-disk-1.qcow2,size=64M"
        ),
    ),
    ("orphan.delete.purge*", lambda c: (pve.plain(c, 200), _orphans(c))),
    ("orphan.*", _orphans),
    ("param.*", _base),
    ("perm.no-acl.*", _both),
    ("perm.plus-datastoreuser.*", _granted(_VMADMIN, _DATASTORE)),
    ("perm.plus-sdnuser.delete*", lambda c: (
        pve.grant(c, _VMADMIN), pve.plain(c, 302))),
    ("perm.plus-sdnuser.*", _granted(_VMADMIN, _DATASTORE, _SDN)),
    (
        "perm.privsep-token-with-acl.delete",
        lambda c: (
            pve.plain(c, 300),
            pve.grant(c, _VMADMIN),
            pve.grant(c, _VMADMIN, ugid="ci@pve!t1"),
        ),
    ),
    ("perm.*", _granted(_VMADMIN)),
    ("pool.create", _nothing),
    ("pool.delete", lambda c: pve.pool(c)),
    ("pools", _nothing),
    ("pools.get-one", lambda c: (pve.plain(c, 163), pve.pool(c, 163))),
    ("pvedaemon-down.*", _down("daemon", "down")),
    ("pvedaemon-hung.*", _down("daemon", "hung")),
    ("qemu.clone.*", _template),
    ("qemu.config.after-snapshots", _base),
    ("qemu.config.full-clone", lambda c: pve.add_vm(c, 103, name="fullc")),
    ("qemu.config.linked-clone", lambda c: (pve.template(c), pve.linked(c))),
    ("qemu.config.template", _template),
    ("qemu.config.put.delete-unused-disk", _unused),
    ("qemu.config.put.detach-disk", _with_disk),
    ("qemu.config.json", _base),
    ("qemu.config", lambda c: _base(c, tags="ci;managed", description="made by X\nline2")),
    (
        "qemu.config.with-sshkeys",
        lambda c: _base(c, tags="a;b", description="hello", sshkeys="ssh-ed25519%20AAAA%20test"),
    ),
    (
        "qemu.config.with-unused-disk",
        lambda c: _base(c, tags="a;b", description="hello", sshkeys="ssh-ed25519%20AAAA%20test"),
    ),
    ("qemu.create.pool", lambda c: pve.pool(c)),
    ("qemu.create.start-1.bridge-missing.tasks", _nothing),
    ("qemu.create.*", _nothing),
    ("qemu.delete.explicit-zero-flags", lambda c: pve.plain(c, 104)),
    ("qemu.delete.with-snapshot", lambda c: pve.snapshot(pve.add_vm(c, 120), "live")),
    ("qemu.delete.*", lambda c: pve.add_vm(c, 103)),
    ("qemu.pending", lambda c: _base(c, tags="a;b", description="hello")),
    ("qemu.reset", lambda c: pve.run(_base(c))),
    ("qemu.resume", lambda c: pve.run(_base(c), paused=True)),
    ("qemu.shutdown.forceStop", lambda c: pve.run(_base(c, acpi="0"))),
    ("qemu.shutdown.ok", _guest),
    ("qemu.snapshot.running.with-agent", _guest),
    ("qemu.snapshot.running*", lambda c: pve.run(_base(c))),
    ("qemu.snapshot.*", _snapshots),
    ("qemu.status.current.stopped", lambda c: pve.linked(c) if pve.template(c) else None),
    ("qemu.status.current.after-stop", _base),
    ("qemu.status.current.running.with-agent", _guest),
    ("qemu.status.current.paused", lambda c: pve.run(_base(c), paused=True)),
    ("qemu.status.current.running", lambda c: pve.run(_base(c, tags="ci;managed"))),
    ("qemu.stop.already-stopped", _base),
    ("qemu.stop", lambda c: pve.run(_base(c))),
    ("qemu.suspend", lambda c: pve.run(_base(c))),
    ("qemu.template", lambda c: pve.add_vm(c, 101)),
    ("qemu.*", _base),
    ("running.config.with-pending", _pending),
    ("running.config.current", _pending),
    ("running.pending", _pending),
    ("running.clone.full", _pending),
    ("running.*", _running_160),
    (
        "storage.content.get-one",
        lambda c: c.add_volume(
            pve.Volume(
                "local",
                "pve1",
                "import/up.qcow2",
                "import",
                "qcow2",
                196616,
                196616,
                virtual_size=8388608,
            )
        ),
    ),
    (
        "storage.content.iso",
        lambda c: c.add_volume(
            pve.Volume("local", "pve1", "iso/up.iso", "iso", "iso", 4096, 4096)
        ),
    ),
    ("storage.content.delete.orphan*", _orphans),
    ("storage.content.delete.import", _nothing),
    ("storage.content.import-only", _nothing),
    ("storage.content*", _family),
    ("*", _nothing),
)


@pytest.fixture(scope="module")
def simulators(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, Simulator]]:
    """A single node and a cluster of two, as the captures were taken on; fast."""
    made: dict[int, Simulator] = {}
    try:
        for nodes in (1, 2):
            directory: Path = tmp_path_factory.mktemp(f"captures{nodes}")
            simulator = Simulator(Options(directory, nodes=nodes, speed=2000))
            simulator.start()
            cluster = simulator.clusters[0]
            with cluster.turn():
                del cluster.storages["shared"]
                cluster.access.users.pop("micronova@pve")
            made[nodes] = simulator
        yield made
    finally:
        for simulator in made.values():
            simulator.stop()


def _left_out(name: str) -> str | None:
    return next((why for glob, why in LEFT_OUT.items() if fnmatchcase(name, glob)), None)


def _names() -> list[str]:
    return pve.names() if pve.CAPTURES.is_dir() else []


COMPARED = [name for name in _names() if _left_out(name) is None]


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
    """A task like the one that the captured call asks about."""
    cluster = simulator.clusters[0]
    kind, vmid, user = _upid_in(capture.url).split(":")[5:8]
    url = simulator.endpoints[0]["url"]
    headers = pve.ticket_headers(simulator)
    if user != "root@pam":
        with cluster.turn():
            pve.grant(cluster, _VMADMIN)
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
    if not running:
        _finish(cluster, made.body["data"])
    return str(made.body["data"])


def _finish(cluster: Cluster, upid: str) -> Any:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with cluster.turn():
            task = cluster.tasks.tasks[upid]
            if not task.running:
                return task
        time.sleep(0.002)
    raise AssertionError(f"{upid} never ended: {task.log}")


def _kinds(value: Any) -> Any:
    """Names and types of a value; items of lists are merged."""
    if isinstance(value, dict):
        return {key: _kinds(inner) for key, inner in value.items() if key not in LOOSE_KEYS}
    if isinstance(value, list):
        return [_kinds(inner) for inner in value]
    if isinstance(value, bool) or value is None:
        return str(value is None)
    return "number" if isinstance(value, int | float) else "string"


_KEY = ("type", "key", "name", "storage", "content")


def _compare(path: str, ours: Any, theirs: Any) -> list[str]:
    """Differences between two bodies' shapes."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        if theirs and all(re.fullmatch(r"/.*", key) for key in theirs):
            return []
        mine, real = _kinds(ours), _kinds(theirs)
        found = [f"{path}.{key}: missing" for key in real if key not in mine]
        found += [f"{path}.{key}: only here" for key in mine if key not in real]
        for key in set(mine) & set(real):
            found += _compare(f"{path}.{key}", ours[key], theirs[key])
        return found
    if isinstance(theirs, list) and isinstance(ours, list):
        return _compare_lists(path, ours, theirs)
    mine, real = _kinds(ours), _kinds(theirs)
    return [] if mine == real else [f"{path}: {ours!r} instead of {theirs!r}"]


def _compare_lists(path: str, ours: list[Any], theirs: list[Any]) -> list[str]:
    if not theirs or not ours:
        return [] if bool(theirs) == bool(ours) else [f"{path}: {len(ours)} for {len(theirs)}"]
    if not isinstance(theirs[0], dict):
        return _compare(f"{path}[0]", ours[0], theirs[0])
    found = []
    for real in theirs:
        fits = [_compare(f"{path}[]", mine, real) for mine in ours if _same_kind(mine, real)]
        if not fits:
            found.append(f"{path}: nothing like {real}")
        else:
            found += min(fits, key=len)
    return found


def _same_kind(mine: dict[str, Any], real: dict[str, Any]) -> bool:
    if "upid" in real:
        return True
    mine_content, real_content = (
        sorted(str(one.get("content", "")).split(",")) for one in (mine, real)
    )
    return mine.get("type") == real.get("type") and (
        mine_content == real_content or "storage" in real
    )


@pytest.mark.parametrize("name", COMPARED)
def test_answers_like_the_real_server(name: str, simulators: dict[int, Simulator]) -> None:
    capture = pve.load(name)
    assert capture is not None
    simulator = simulators[2 if _is_pair(name) else 1]
    cluster = simulator.clusters[0]
    simulator.engine.set_speed(2000)
    with cluster.turn():
        pve.clear(cluster)
        _situation(name)(cluster)
    _before(simulator, capture)
    answer = _ask(simulator, capture)
    assert (answer.status, pve.steady(answer.reason)) == (
        capture.status,
        pve.steady(capture.reason),
    )
    if capture.status >= 400:
        _same_failure(answer, capture)
    else:
        assert _compare("", answer.body, capture.answer) == []
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
            simulator.engine.set_speed(40)
        vmid, extra = (105, {"scsi0": "local:0,import-from=local:import/big.raw"})
        if not slow:
            vmid, extra = 106, {"memory": "64"}
        made = pve.send(
            url, "POST", "/api2/json/nodes/pve1/qemu", headers, pve.form(vmid=vmid, **extra)
        )
        if not slow:
            _finish(cluster, made.body["data"])
    elif capture.name in ("nodes.tasks", "cluster.tasks", "cluster2.cluster.tasks") and no_tasks:
        made = pve.send(
            url, "POST", "/api2/json/nodes/pve1/qemu", headers, pve.form(vmid=120, memory=64)
        )
        _finish(cluster, made.body["data"])
    if capture.name == "perm.pvevmadmin-on-vms.tasks.list":
        token = {"Authorization": "PVEAPIToken=ci@pve!t0=secret"}
        made = pve.send(
            url, "POST", "/api2/json/nodes/pve1/qemu", token, pve.form(vmid=300, memory=64)
        )
        _finish(cluster, made.body["data"])
    if capture.url.startswith("/api2/json/cluster/resources") or capture.name == "pools.get-one":
        fresh = "just-after" not in capture.name and capture.name != "pools.get-one"
        with cluster.turn():
            cluster.stats_at = float("-inf") if fresh else float("inf")


def _same_failure(answer: Answer, capture: Capture) -> None:
    if isinstance(capture.answer, str):
        assert answer.body == capture.answer
        return
    theirs = dict(capture.answer)
    ours = dict(answer.body)
    theirs["message"], ours["message"] = pve.steady(theirs["message"]), pve.steady(ours["message"])
    assert ours == theirs


def _same_task(cluster: Cluster, upid: str, capture: Capture) -> None:
    task = _finish(cluster, upid)
    mine, real = urlsplit(capture.url).path, capture.answer["data"].split(":")[5:8]
    assert task.upid.split(":")[5:8] == real, mine
    if capture.name in LOGS_NOT_COMPARED and not LOGS_NOT_COMPARED[capture.name] == "":
        if capture.name.startswith("err."):
            return
    assert pve.steady(task.exitstatus) == pve.steady(capture.exitstatus or "")
    if capture.name not in LOGS_NOT_COMPARED:
        assert _told(task.log) == _told(capture.log)


def _told(lines: list[str]) -> list[str]:
    """Log lines that don't depend on the host's speed and tools."""
    skipped = re.compile(
        r"^transferred |^Formatting |guest filesystem freeze|host_mtu|Guest Agent"
        r"|saving the VM state|in 0s$|^generating cloud-init"
    )
    return [pve.steady(line) for line in lines if not skipped.search(line)]


def test_every_capture_is_compared_or_left_out_for_a_reason() -> None:
    unknown = [glob for glob in LEFT_OUT if not any(fnmatchcase(n, glob) for n in _names())]
    assert unknown == []
    assert len(COMPARED) > 330
