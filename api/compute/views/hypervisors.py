"""Views of a compute host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from api.compute.call import Call
from api.compute.views.hosts import disabled_reason, is_up
from common.counting import counted
from common.digits import is_digits
from db.reads.hosts.hosts import Host

View = Callable[[Call, Host], dict[str, Any]]


def identity(call: Call, host: Host) -> str | int:
    """Return the ID: the UUID since 2.53, a number before."""
    return host.uuid if call.version >= 53 else host.id


def basic(call: Call, host: Host) -> dict[str, Any]:
    """Name and state."""
    down_seconds = call.cloud.conf.api.service_down_seconds
    up = is_up(host, down_seconds)
    return {
        "id": identity(call, host),
        "hypervisor_hostname": host.host,
        "state": "up" if up else "down",
        "status": "disabled" if host.disabled else "enabled",
    }


def detailed(call: Call, host: Host) -> dict[str, Any]:
    """Return a compute host with details: the numbers before 2.88, the uptime since."""
    facts = host.facts
    view = basic(call, host) | {
        "hypervisor_type": facts.get("hypervisor_type", "QEMU"),
        "hypervisor_version": version_number(facts.get("hypervisor_version", "")),
        "host_ip": facts.get("host_ip", ""),
        "service": {
            "id": host.service_uuid if call.version >= 53 else host.service_id,
            "host": host.host,
            "disabled_reason": disabled_reason(host.disabled_reason, host, disabled=host.disabled),
        },
    }
    if call.version >= 88:
        return view | {"uptime": uptime(host)}
    cpu = _cpu(host)
    cpu_info = cpu if call.version >= 28 else orjson.dumps(cpu).decode()
    return view | numbers(host) | {"cpu_info": cpu_info}


def numbers(host: Host) -> dict[str, int]:
    """Capacity and usage, reserved amounts included; MiB and GiB."""
    facts = host.facts
    memory_used = host.memory_used_mib + facts.get("reserved_memory_mib", 0)
    disk_used = host.disk_used_gib + facts.get("reserved_disk_gib", 0)
    memory, disk = facts.get("memory_mib", 0), facts.get("disk_gib", 0)
    return {
        "vcpus": facts.get("vcpus", 0),
        "vcpus_used": host.vcpus_used,
        "memory_mb": memory,
        "memory_mb_used": memory_used,
        "free_ram_mb": memory - memory_used,
        "local_gb": disk,
        "local_gb_used": disk_used,
        "free_disk_gb": disk - disk_used,
        "disk_available_least": disk - facts.get("disk_used_gib", 0),
        "current_workload": 0,
        "running_vms": host.servers,
    }


def statistics(hosts: Sequence[Host]) -> dict[str, int]:
    """Return the sums over the enabled hosts."""
    counted = [numbers(host) for host in hosts if not host.disabled]
    names = numbers(_NOTHING)
    return {"count": len(counted)} | {
        name: sum(number[name] for number in counted) for name in names
    }


_NOTHING = Host(0, "", "", {}, 0, "", False, None, False, None, 0, 0, 0, 0)


def _cpu(host: Host) -> dict[str, Any]:
    facts = host.facts
    return {
        "arch": facts.get("architecture", "x86_64"),
        "model": facts.get("cpu_model", ""),
        "vendor": facts.get("cpu_vendor", ""),
        "features": list(facts.get("cpu_flags", ())),
        "topology": {
            "sockets": facts.get("cpu_sockets", 1),
            "cores": facts.get("cpu_cores", 1),
            "threads": 1,
        },
    }


def version_number(text: str) -> int:
    """`8.2.4` as Nova counts versions: 8002004."""
    parts = [int(part) if is_digits(part) else 0 for part in text.split(".")[:3]]
    major, minor, micro = [*parts, 0, 0, 0][:3]
    return major * 1_000_000 + minor * 1000 + micro


def uptime(host: Host) -> str | None:
    """Return the node's uptime as `up 1 day, 2:03`; None when it isn't known."""
    seconds = host.facts.get("uptime_seconds", 0)
    if not seconds:
        return None
    days, rest = divmod(int(seconds), 86_400)
    before = f"{counted(days, 'day')}, " if days else ""
    return f"up {before}{rest // 3600}:{rest % 3600 // 60:02}"


def servers(here: Sequence[tuple[str, str]], *, always: bool) -> dict[str, Any]:
    """Return the `servers` field; left out where there are none, unless `always`."""
    if not here and not always:
        return {}
    return {"servers": [{"uuid": uuid, "name": name} for uuid, name in here]}
