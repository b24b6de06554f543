"""Nodes and tasks over the API."""

from __future__ import annotations

import hashlib
import ssl
from typing import Any

from simulator.api.cluster import may_see_task
from simulator.api.resources import memory_used
from simulator.engine import Sleep, Work
from simulator.request.call import Call
from simulator.state import sdn
from simulator.state.access import Identity
from simulator.state.model import Node, Task

_SUBDIRS = [
    "aplinfo",
    "apt",
    "capabilities",
    "ceph",
    "certificates",
    "config",
    "disks",
    "dns",
    "firewall",
    "hardware",
    "hosts",
    "journal",
    "lxc",
    "migrateall",
    "netstat",
    "network",
    "qemu",
    "query-oci-repo-tags",
    "query-url-metadata",
    "replication",
    "report",
    "rrd",
    "rrddata",
    "scan",
    "sdn",
    "services",
    "spiceshell",
    "startall",
    "status",
    "stopall",
    "storage",
    "subscription",
    "suspendall",
    "syslog",
    "tasks",
    "termproxy",
    "time",
    "version",
    "vncshell",
    "vzdump",
    "wakeonlan",
]
_SERVICES = {
    "chrony": "chrony, an NTP client/server",
    "corosync": "Corosync Cluster Engine",
    "cron": "Regular background program processing daemon",
    "postfix": "Postfix Mail Transport Agent",
    "proxmox-firewall": "Proxmox nftables firewall",
    "pve-cluster": "The Proxmox VE cluster filesystem",
    "pve-firewall": "Proxmox VE firewall",
    "pve-ha-crm": "PVE Cluster HA Resource Manager Daemon",
    "pve-ha-lrm": "PVE Local HA Resource Manager Daemon",
    "pvedaemon": "PVE API Daemon",
    "pvefw-logger": "Proxmox VE firewall logger",
    "pveproxy": "PVE API Proxy Server",
    "pvescheduler": "Proxmox VE scheduler",
    "pvestatd": "PVE Status Daemon",
    "qmeventd": "PVE Qemu Event Daemon",
    "spiceproxy": "PVE SPICE Proxy Server",
    "sshd": "OpenBSD Secure Shell server",
    "systemd-journald": "Journal Service",
}
_DAY = 86_400
KERNEL = "6.17.2-1-pve"
FLAGS = (
    "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat ssse3 fma "
    "cx16 sse4_1 sse4_2 movbe popcnt aes avx f16c bmi1 avx2 bmi2 svm"
)


def index(call: Call) -> list[dict[str, str]]:
    """Return the index below a node."""
    return [{"name": name} for name in _SUBDIRS]


def status(call: Call) -> dict[str, Any]:
    """`GET /nodes/{node}/status`."""
    cluster, node = call.cluster, call.home()
    used = memory_used(cluster, node)
    local = next((one for one in cluster.storages.values() if not one.shared), None)
    total = local.capacity if local is not None else 0
    disk = cluster.used(local, node.name) if local is not None else 0
    found = cluster.version
    return {
        "boot-info": {"mode": "efi", "secureboot": 0},
        "cpu": 0.02,
        "cpuinfo": _cpuinfo(node),
        "current-kernel": {
            "machine": "x86_64",
            "release": KERNEL,
            "sysname": "Linux",
            "version": "#1 SMP PREEMPT_DYNAMIC",
        },
        "idle": 0,
        "ksm": {"shared": 0},
        "kversion": f"Linux {KERNEL} #1 SMP PREEMPT_DYNAMIC",
        "loadavg": ["0.42", "0.40", "0.38"],
        "memory": {
            "available": node.memory - used,
            "free": node.memory - used,
            "total": node.memory,
            "used": used,
        },
        "pveversion": f"pve-manager/{node.shown.get('version', found.version)}/{found.repoid}",
        "rootfs": {"avail": total - disk, "free": total - disk, "total": total, "used": disk},
        "swap": {"free": 0, "total": 0, "used": 0},
        "uptime": cluster.uptime(node),
        "wait": 0,
    }


def _cpuinfo(node: Node) -> dict[str, Any]:
    return {
        "cores": max(1, node.cpus // 2),
        "cpus": node.cpus,
        "family": "25",
        "flags": node.shown.get("flags", FLAGS),
        "hvm": "1",
        "mhz": "2596.144",
        "model": node.shown.get("model", "AMD EPYC"),
        "sockets": 1,
        "user_hz": 100,
        "vendor": "AuthenticAMD",
    }


def services(call: Call) -> list[dict[str, Any]]:
    """`GET /nodes/{node}/services`: all run, but for those shown otherwise."""
    shown = call.home().shown.get("services", {})
    return [
        {
            "active-state": "active" if state == "running" else "inactive",
            "desc": _SERVICES[name],
            "name": name,
            "service": name,
            "state": state,
            "unit-state": "enabled",
        }
        for name in _SERVICES
        for state in [shown.get(name, "running")]
    ]


def certificates(call: Call) -> list[dict[str, Any]]:
    """`GET /nodes/{node}/certificates/info`: what the cluster's own authority made of each node.

    A node has its certificate for two years, by what is shown. With TLS all of them are the
    simulator's own, which has signed itself; else none has a text.
    """
    node, text = call.home(), call.cluster.authority
    served = {"pem": text, "fingerprint": _fingerprint(text)} if text else {}
    begun = int(node.booted) - _DAY
    names = (("pve-root-ca.pem", 3650), ("pve-ssl.pem", node.certificate_days))
    return [
        {
            **served,
            "filename": name,
            "issuer": "/CN=Proxmox Virtual Environment/O=PVE Cluster Manager CA",
            "notafter": begun + days * _DAY,
            "notbefore": begun,
            "subject": f"/OU=PVE Cluster Node/O=Proxmox Virtual Environment/CN={node.name}",
        }
        for name, days in names
    ]


def _fingerprint(pem: str) -> str:
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).digest().hex(":").upper()


def network(call: Call) -> list[dict[str, Any]]:
    """`GET /nodes/{node}/network`."""
    node, wanted = call.home(), call.get("type")
    found = interfaces(node)
    if wanted in ("any_bridge", "include_sdn", "vnet"):
        found += _vnets(call, node)
    if wanted in ("", "include_sdn"):
        return found
    kinds = {"any_bridge": ("bridge", "vnet"), "any_local_bridge": ("bridge",)}
    return [one for one in found if one["type"] in kinds.get(wanted, (wanted,))]


def _vnets(call: Call, node: Node) -> list[dict[str, Any]]:
    """Return the vnets assigned to the node, whether or not they are applied there."""
    return [
        {
            "active": "1",
            "comments": vnet.options.get("alias"),
            "iface": vnet.vnet,
            "ipam": 0,
            "type": "vnet",
            "vlanaware": int(vnet.options.get("vlanaware", "0")),
        }
        for vnet in sdn.vnets_of(call.cluster, node)
        if call.cluster.access.has(
            call.who, f"/sdn/zones/{vnet.zone}/{vnet.vnet}", "SDN.Audit", "SDN.Use"
        )
    ]


def interfaces(node: Node) -> list[dict[str, Any]]:
    """Return a node's own interfaces, as the API shows them."""
    port = {
        "active": 1,
        "exists": 1,
        "families": ["inet"],
        "iface": "eno1",
        "method": "manual",
        "method6": "manual",
        "priority": 2,
        "type": "eth",
    }
    return [*(_bridge(node, number, name) for number, name in enumerate(node.bridges)), port]


def _bridge(node: Node, number: int, name: str) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "active": 1,
        "autostart": 1,
        "bridge_fd": "0",
        "bridge_ports": "eno1" if number == 0 else "",
        "bridge_stp": "off",
        "families": ["inet"],
        "iface": name,
        "method": "static" if number == 0 else "manual",
        "method6": "manual",
        "priority": 3 + number,
        "type": "bridge",
    }
    if number == 0:
        shown |= {"address": node.ip, "cidr": f"{node.ip}/16", "netmask": "16"}
        shown |= {"gateway": node.gateway} if node.gateway else {}
    shown |= node.shown.get("interfaces", {}).get(name, {})
    return shown


def _owned_by(task: Task, who: Identity) -> bool:
    return task.authid == who.authid or (not who.tokenid and task.user == who.user)


def tasks(call: Call) -> list[dict[str, Any]]:
    """`GET /nodes/{node}/tasks`: filtered, newest first, with the total."""
    book, source = call.cluster.tasks, call.get("source", "archive")
    found: list[dict[str, Any]] = []
    start, limit = int(call.get("start", "0")), int(call.get("limit", "50"))
    total = 0
    candidates: list[Task] = []
    if source in ("active", "all"):
        candidates += book.active(call.node)
    if source in ("archive", "all"):
        candidates += book.archive(call.node)
    for task in candidates:
        if not may_see_task(call, task) or not _wanted(call, task):
            continue
        total += 1
        if total > start and len(found) < limit:
            found.append(_listed(task))
    call.extra["total"] = total
    return found


def _wanted(call: Call, task: Task) -> bool:
    failed = not task.running and task.exitstatus != "OK"
    wanted_status = call.get("statusfilter")
    return not (
        (call.get("vmid") and task.id != call.get("vmid"))
        or (call.get("typefilter") and task.type != call.get("typefilter"))
        or (call.get("userfilter") and call.get("userfilter").lower() not in task.user.lower())
        or (call.get("since") and task.starttime < int(call.get("since")))
        or (call.get("until") and task.starttime > int(call.get("until")))
        or (call.flag("errors") and not failed)
        or (wanted_status and _status_text(task) not in wanted_status.split(","))
    )


def _status_text(task: Task) -> str:
    if task.exitstatus == "OK":
        return "ok"
    if task.exitstatus.startswith("WARNINGS"):
        return "warning"
    return "unknown" if task.exitstatus in ("", "unexpected status") else "error"


def _facts(task: Task) -> dict[str, Any]:
    names = ("id", "node", "pid", "pstart", "starttime", "type", "upid")
    return {name: getattr(task, name) for name in names}


def _listed(task: Task) -> dict[str, Any]:
    shown = _facts(task)
    if task.running:
        # Active entries have user and token as one name; archived ones have two fields.
        return {**shown, "user": task.authid, "saved": "0", "status": "RUNNING"}
    shown |= {"user": task.user, "endtime": task.endtime, "status": task.exitstatus}
    if task.tokenid:
        shown["tokenid"] = task.tokenid
    return shown


def _readable(call: Call) -> Task:
    task = call.cluster.tasks.find(call.get("upid"), call.node)
    if not _owned_by(task, call.who):
        call.cluster.access.require(call.who, f"/nodes/{call.node}", "Sys.Audit")
    return task


def task_index(call: Call) -> list[dict[str, str]]:
    """Return the index below a task."""
    return [{"name": "log"}, {"name": "status"}]


def task_status(call: Call) -> dict[str, Any]:
    """`GET …/tasks/{upid}/status`."""
    task = _readable(call)
    status = "running" if task.running else "stopped"
    shown = {**_facts(task), "status": status, "user": task.user}
    if task.tokenid:
        shown["tokenid"] = task.tokenid
    if not task.running:
        shown["exitstatus"] = task.exitstatus
    return shown


def task_log(call: Call) -> list[dict[str, Any]]:
    """`GET …/tasks/{upid}/log`: numbered lines and their total."""
    task = _readable(call)
    start, limit = int(call.get("start", "0")), int(call.get("limit", "50"))
    lines = task.log[start : start + limit] if limit else task.log[start:]
    call.extra["total"] = len(task.log)
    return [{"n": start + number, "t": text} for number, text in enumerate(lines, 1)]


def stop_task(call: Call) -> Work:
    """`DELETE …/tasks/{upid}`: send SIGTERM; a finished task is left alone."""
    task = call.cluster.tasks.find(call.get("upid"), call.node)
    if not _owned_by(task, call.who):
        call.cluster.access.require(call.who, f"/nodes/{call.node}", "Sys.Modify")
    if task.running:
        call.cluster.tasks.stop(task.upid)
        yield Sleep(1.0)


def containers(call: Call) -> list[dict[str, Any]]:
    """`GET /nodes/{node}/lxc`: always empty, as containers aren't simulated."""
    return []
