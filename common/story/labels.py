"""Names of programs as words for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.story.text import one_line

#: words that no rule makes
_WORDS: Mapping[str, str] = {
    "api_request": "request received",
    "request_id": "request",
    "global_request_id": "global request",
    "project_id": "project",
    "user_id": "user",
    "started_at": "began",
    "upids": "tasks",
    "vmid": "VMID",
    "ips": "addresses",
    "ram": "memory",
    "cpu": "processors",
    "vcpus": "VCPUs",
    "memory_mib": "memory (MiB)",
    "disk_gib": "disk (GiB)",
    "ha_rule": "rules of high availability",
    "ha_priority": "priority of high availability",
}
#: services whose names begin those of steps
_SERVICES = ("api_", "conductor_", "compute_", "scheduler_")
#: what is written in capitals
_CAPITALS = {"vm": "VM", "id": "ID", "ip": "IP", "ha": "HA", "iso": "ISO", "vlan": "VLAN"}


def label(name: Any) -> str:
    """Return a name as words.

    >>> [label(name) for name in ("compute_create_vm", "no_valid_host", "request_id")]
    ['create VM', 'no valid host', 'request']
    """
    text = one_line(name or "")
    if text in _WORDS:
        return _WORDS[text]
    for service in _SERVICES:
        if text.startswith(service):
            text = text.removeprefix(service)
    return " ".join(_CAPITALS.get(word, word) for word in text.split("_"))
