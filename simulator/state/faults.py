"""Faults to inject: on the n-th call of a path, at a leak path, or persistent ones."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from simulator.engine import Lock, Process

CALL_ACTIONS = frozenset(
    {"fail", "slow", "hang", "hold", "drop", "lose-answer", "task-fail", "task-kill"}
)
ENVIRONMENT = frozenset(
    {
        "no-quorum",
        "node-down",
        "proxy-down",
        "daemon-down",
        "daemon-hung",
        "daemon-restart",
        "storage-full",
        "storage-offline",
        "start-slow",
        "storage-slow",
        "token-revoked",
        "lock-held",
        "config-lock",
        "vnet-error",
        "maintenance",
        "no-reload",
        "migration-slow",
        "migration-problems",
        "guest-silent",
    }
)
LEAKS = {
    "L1": "create: no worker could be started; the config with `lock: create` remains",
    "L2": "create: adding to the pool fails; the config is deleted, the disks remain",
    "L3": "create: a disk fails and freeing the others fails too: orphan volumes",
    "L4": "create or clone: the worker is killed; locked config and volumes stay",
    "L5": "create with start=1: the start fails, the create ends OK",
    "L6": "clone to another node: the pool fails after the rename; config without disks",
    "L7": "destroy: a disk can't be removed; a warning, and the config is deleted",
    "L8": "suspend to disk: the memory can't be saved; the lock `suspending` remains",
    "L9": "resume from disk: the memory can't be removed; the VM runs, lock `suspended` remains",
}


@dataclass
class Fault:
    """One fault. `nth` counts matching calls from 1; it strikes `times` times, 0: every time."""

    id: int
    action: str
    cluster: str = ""
    method: str = ""
    path: str = ""
    node: str = ""
    vmid: int = 0
    nth: int = 1
    times: int = 1
    status: int = 0
    text: str = ""
    seconds: float = 0.0
    how: str = ""
    leak: str = ""
    storage: str = ""
    token: str = ""
    lock: str = ""
    vnet: str = ""
    ha: bool = False
    seen: int = 0
    struck: int = 0
    pattern: re.Pattern[str] = field(default_factory=lambda: re.compile(""), repr=False)
    strike: threading.Event = field(default_factory=threading.Event, repr=False)
    holders: list[Process] = field(default_factory=list, repr=False)
    gate: Lock = field(default_factory=lambda: Lock("held call"), repr=False)

    def strikes(self) -> bool:
        """Count one match; return whether the fault strikes it."""
        self.seen += 1
        if self.seen < self.nth or (self.times and self.struck >= self.times):
            return False
        self.struck += 1
        self.strike.set()
        return True

    def view(self) -> dict[str, Any]:
        """Return the fault as the control API shows it."""
        shown = {name: value for name, value in vars(self).items() if name not in _INNER}
        return {name: value for name, value in shown.items() if value not in ("", None)}


_INNER = frozenset({"pattern", "strike", "holders", "gate"})


class BadOrder(ValueError):
    """A fault order that is invalid, with the reason."""


class Faults:
    """The injected faults of one cluster."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self.orders: dict[int, Fault] = {}

    def add(self, order: dict[str, Any]) -> Fault:
        """Add a fault. Raises BadOrder if the order is invalid."""
        order = dict(order)
        leak = str(order.get("leak", ""))
        action = "leak" if leak else str(order.get("action", ""))
        order.pop("action", None)
        if leak and leak not in LEAKS:
            raise BadOrder(f"no leak path {leak!r}; there are {', '.join(LEAKS)}")
        if not leak and action not in CALL_ACTIONS | ENVIRONMENT:
            known = ", ".join(sorted(CALL_ACTIONS | ENVIRONMENT))
            raise BadOrder(f"no action {action!r}; there are {known}, and leak")
        unknown = set(order) - (set(Fault.__dataclass_fields__) - _INNER)
        if unknown:
            raise BadOrder(f"unknown field {', '.join(sorted(unknown))}")
        fault = Fault(next(self._ids), action, **order)
        try:
            fault.pattern = re.compile(fault.path)
        except re.error as error:
            raise BadOrder(f"path is no regular expression: {error}") from error
        self.orders[fault.id] = fault
        return fault

    def remove(self, fault_id: int) -> Fault | None:
        """Remove a fault."""
        return self.orders.pop(fault_id, None)

    def clear(self) -> list[Fault]:
        """Remove all faults."""
        gone = list(self.orders.values())
        self.orders.clear()
        return gone

    def for_call(self, method: str, path: str, node: str) -> list[Fault]:
        """Return the faults that strike this call; counts them."""
        return [
            fault
            for fault in self.orders.values()
            if fault.action in CALL_ACTIONS
            and fault.method in ("", method)
            and fault.node in ("", node)
            and fault.pattern.search(path)
            and fault.strikes()
        ]

    def leak(self, name: str, node: str, vmid: int, *others: int) -> bool:
        """Return whether to take this leak path now; counts it."""
        return any(
            fault.leak == name
            and fault.node in ("", node)
            and fault.vmid in (0, vmid, *others)
            and fault.strikes()
            for fault in list(self.orders.values())
        )

    def standing(
        self, action: str, *, storage: str = "", node: str = "", vmid: int = 0
    ) -> Iterable[Fault]:
        """Return the standing faults of a kind that apply to a storage, node and VM."""
        return [
            fault
            for fault in self.orders.values()
            if fault.action == action
            and fault.storage in ("", storage)
            and fault.node in ("", node)
            and fault.vmid in (0, vmid)
        ]
