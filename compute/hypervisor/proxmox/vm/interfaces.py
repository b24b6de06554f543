"""Interfaces of a VM that exists: plugged and unplugged, running or not, found by their MAC.

A change that a running VM doesn't take stays pending, and would be made at its next start. So what
became of it is read in the list of pending changes, and what is still pending is taken back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from common.failures import Verdict
from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster.vmid import Vm

_NIC = re.compile(r"net\d+")
MOST = 32


@dataclass(frozen=True)
class Seen:
    """An interface in a configuration; None: it isn't there."""

    slot: str | None = None
    """Where it is now."""
    waiting: str | None = None
    """Where it would be at the next start."""
    leaving: bool = False
    """It would go at the next start."""

    @property
    def plugged(self) -> bool:
        """Whether it is there, now and after the next start."""
        return self.slot is not None and not self.leaving

    @property
    def gone(self) -> bool:
        """Whether it is not there, now and after the next start."""
        return self.slot is None and self.waiting is None


def seen(pending: Iterable[Mapping[str, Any]], mac: str) -> Seen:
    """Return how an interface stands in an answer of ``pending``. Pure."""
    found = Seen()
    for entry in pending:
        name = str(entry["key"])
        if not _NIC.fullmatch(name):
            continue
        if has_mac(entry.get("value"), mac):
            other = "pending" in entry and not has_mac(entry["pending"], mac)
            found = Seen(name, found.waiting, bool(entry.get("delete")) or other)
        elif has_mac(entry.get("pending"), mac):
            found = Seen(found.slot, name, found.leaving)
    return found


def has_mac(value: Any, mac: str) -> bool:
    """Return whether an interface's text has this MAC address."""
    return f"={mac}," in f"{value or ''},".lower()


def free_slot(pending: Iterable[Mapping[str, Any]], wanted: int) -> str:
    """Return the slot that is wanted, or the first free one. Raises HypervisorError."""
    used = {str(entry["key"]) for entry in pending}
    slots = [f"net{number}" for number in (wanted, *range(MOST))]
    free = next((slot for slot in slots if slot not in used), None)
    if free is None:
        raise _refused(f"It has {MOST} interfaces already.")
    return free


def plug(vm: Vm, mac: str, text: str, wanted: int) -> str:
    """Plug it, unless it is plugged; return its slot.

    Raises HypervisorError if the VM doesn't take it; then it may be pending.
    """
    now = look(vm, mac)
    if now.plugged:
        return str(now.slot)

    def change(pending: list[Mapping[str, Any]]) -> dict[str, str]:
        return {seen(pending, mac).waiting or free_slot(pending, wanted): text}

    _change(vm, mac, lambda after: after.plugged, change)
    now = _look_after(vm, mac)
    if not now.plugged:
        raise _refused("The running machine takes no further interface.")
    return str(now.slot)


def unplug(vm: Vm, mac: str) -> None:
    """Unplug it, wherever it is. Raises HypervisorError if the guest keeps it; then it stays."""
    if look(vm, mac).gone:
        return

    def change(pending: list[Mapping[str, Any]]) -> dict[str, str]:
        now = seen(pending, mac)
        if now.slot is None:
            return {"revert": str(now.waiting)}
        return {"delete": now.slot}

    problem: ApiError | None = None
    try:
        _change(vm, mac, lambda after: after.gone, change)
    except ApiError as error:
        problem = error
    now = _look_after(vm, mac)
    if now.gone:
        return
    if not now.leaving:
        raise problem or _refused("The interface is still there.")
    _take_back(vm, mac)
    raise _refused("The guest does not let go of the interface.") from problem


def _take_back(vm: Vm, mac: str) -> None:
    """Make a removal that is pending none, so that the next start changes nothing."""

    def change(pending: list[Mapping[str, Any]]) -> dict[str, str]:
        return {"revert": str(seen(pending, mac).slot)}

    _change(vm, mac, lambda after: not after.leaving, change)


def look(vm: Vm, mac: str) -> Seen:
    """Return how an interface stands now."""
    return seen(_pending(vm), mac)


def _look_after(vm: Vm, mac: str) -> Seen:
    """Look what became of a change; once more if that fails, for the change may be made."""
    try:
        return look(vm, mac)
    except ApiError:
        return look(vm, mac)


def _pending(vm: Vm) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = vm.shared.client.get(f"{vm.path}/pending")
    return found


def _change(
    vm: Vm,
    mac: str,
    done: Callable[[Seen], bool],
    change: Callable[[list[Mapping[str, Any]]], dict[str, str]],
) -> None:
    """Write once what is seen missing, bound to the configuration that was proven ours."""

    def call() -> Any:
        config = vm.fence()
        values = change(_pending(vm))
        return vm.shared.client.post(f"{vm.path}/config", digest=config["digest"], **values)

    vm.converge(lambda: done(look(vm, mac)), call, look_first=False)


def _refused(text: str) -> HypervisorError:
    return HypervisorError(Category.CONFIGURATION, text, verdict=Verdict.FATAL)
