"""Backups over the API except creating them: defaults, an archive's content, pruning."""

from __future__ import annotations

import re
from typing import Any

from simulator.qemu import archives
from simulator.request.call import Call
from simulator.state.model import Volume

_DEFAULTS: dict[str, Any] = {
    "all": 0,
    "bwlimit": 0,
    "compress": "0",
    "fleecing": {"enabled": 0},
    "ionice": 7,
    "lockwait": 180,
    "mailnotification": "always",
    "mode": "snapshot",
    "notification-mode": "auto",
    "performance": {"max-workers": 16, "pbs-entries-max": 1048576},
    "pigz": 0,
    "prune-backups": "keep-all=1",
    "quiet": 0,
    "remove": 1,
    "stdexcludes": 1,
    "stop": 0,
    "stopwait": 10,
    "storage": "local",
    "zstd": 1,
}


def defaults(call: Call) -> dict[str, Any]:
    """`GET …/vzdump/defaults`."""
    storage = call.cluster.storage(call.get("storage") or "local")
    return {**_DEFAULTS, "storage": storage.id, "dumpdir": f"{storage.path}/dump"}


def extract_config(call: Call) -> str:
    """`GET …/vzdump/extractconfig`."""
    return archives.saved_text(call, archives.archive(call, call.get("volume")))


def prunable(call: Call) -> list[dict[str, Any]]:
    """`GET …/prunebackups`: list what would be kept and removed; removes nothing."""
    storage = call.cluster.enabled_storage(call.get("storage"), call.node)
    place = call.cluster.place(storage.id, call.node)
    kept = re.search(r"keep-last=([0-9]+)", call.get("prune-backups"))
    by_vm: dict[int, list[Volume]] = {}
    for volume in call.cluster.volumes.at(place, 0):
        vmid = archives.owner(volume.name)
        if vmid and call.get("vmid") in ("", str(vmid)):
            by_vm.setdefault(vmid, []).append(volume)
    found = []
    for vmid, volumes in sorted(by_vm.items()):
        for number, one in enumerate(sorted(volumes, key=_age)):
            mark = "remove" if kept and number >= int(kept.group(1)) else "keep"
            entry = {"ctime": one.ctime, "type": "qemu", "vmid": vmid, "volid": one.volid}
            found.append({**entry, "mark": "protected" if one.protected else mark})
    return found


def _age(volume: Volume) -> tuple[int, str]:
    return -volume.ctime, volume.name


def jobs(_call: Call) -> list[dict[str, Any]]:
    """`GET /cluster/backup`: always empty, as scheduled jobs are not simulated."""
    return []


def not_backed_up(call: Call) -> list[dict[str, Any]]:
    """`GET /cluster/backup-info/not-backed-up`: all guests, as no job includes any."""
    return [
        {"vmid": vm.vmid, "type": "qemu", "name": vm.config.get("name", f"VM {vm.vmid}")}
        for vm in sorted(call.cluster.vms.values(), key=lambda one: one.vmid)
        if call.cluster.access.has(call.who, f"/vms/{vm.vmid}", "VM.Audit")
    ]
