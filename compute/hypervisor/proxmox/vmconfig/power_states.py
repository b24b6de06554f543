"""The power state of a VM, as Proxmox VE shows it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.resources.states import PowerState

#: the lock of a VM whose memory is on disk: a start, a resume and a destroy ignore it
SUSPENDED = "suspended"

_POWER = {
    "running": PowerState.RUNNING,
    "stopped": PowerState.SHUTDOWN,
    "paused": PowerState.PAUSED,
    "suspended": PowerState.SUSPENDED,
}


def current(status: Mapping[str, Any]) -> PowerState:
    """Return the power state in an answer of ``status/current``."""
    if status.get("status") == "running":
        paused = status.get("qmpstatus") == "paused"
        return PowerState.PAUSED if paused else PowerState.RUNNING
    if status.get("lock") == SUSPENDED:
        return PowerState.SUSPENDED
    return _POWER.get(str(status.get("status", "")), PowerState.NOSTATE)


def listed(status: str, lock: str) -> PowerState:
    """Return the power state in the cluster's list.

    A paused VM is listed as running. The lock is right at once, the status some seconds late.
    """
    if lock == SUSPENDED:
        return PowerState.SUSPENDED
    return _POWER.get(status, PowerState.NOSTATE)


def is_locked(config: Mapping[str, Any]) -> bool:
    """Return whether a configuration carries a lock that excludes other operations."""
    return str(config.get("lock", SUSPENDED)) != SUSPENDED
