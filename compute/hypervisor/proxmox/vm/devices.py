"""Devices of a VM that exists: plugged and unplugged, running or not, found by what they are.

Proxmox VE stores a change that a running VM doesn't take as pending, and makes it at the next
start. So the list of pending changes is read after each change, and pending ones are reverted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from common.failures import Verdict
from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster.vmid import Config, Vm


@dataclass(frozen=True)
class Device:
    """One device, in any option of a configuration."""

    keys: re.Pattern[str]
    """The options that may hold it."""
    is_it: Callable[[Any], bool]
    """Whether an option's value is this one."""
    what: str
    """Its kind, for people."""


@dataclass(frozen=True)
class Seen:
    """A device in a configuration; None: it isn't there."""

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


def seen(pending: Iterable[Mapping[str, Any]], device: Device) -> Seen:
    """Return how a device stands in an answer of ``pending``. Pure."""
    found = Seen()
    for entry in pending:
        name = str(entry["key"])
        if not device.keys.fullmatch(name):
            continue
        if device.is_it(entry.get("value")):
            other = "pending" in entry and not device.is_it(entry["pending"])
            found = Seen(name, found.waiting, bool(entry.get("delete")) or other)
        elif device.is_it(entry.get("pending")):
            found = Seen(found.slot, name, found.leaving)
    return found


def free_slot(pending: Iterable[Mapping[str, Any]], slots: Sequence[str], what: str) -> str:
    """Return the first of the slots that is free. Raises HypervisorError."""
    used = {str(entry["key"]) for entry in pending}
    free = next((slot for slot in slots if slot not in used), None)
    if free is None:
        raise refused(f"It has no place for another {what}: {slots[0]} is taken.")
    return free


def plug(
    vm: Vm,
    device: Device,
    text: str,
    slots: Sequence[str],
    also: Callable[[Config], Mapping[str, str]] = lambda _: {},
) -> str:
    """Plug it into the first of the slots that is free, unless it is plugged; return its slot.

    ``also`` returns options that are set with it, by the present ones. Raises HypervisorError if
    the VM doesn't take it; then it may be pending.
    """
    now = look(vm, device)
    if now.plugged:
        return str(now.slot)

    def change(config: Config, pending: list[Mapping[str, Any]]) -> dict[str, str]:
        slot = seen(pending, device).waiting or free_slot(pending, slots, device.what)
        return {slot: text, **also(config)}

    _change(vm, device, lambda after: after.plugged, change)
    now = _look_after(vm, device)
    if not now.plugged:
        raise refused(f"The running machine takes no further {device.what}.")
    return str(now.slot)


def unplug(vm: Vm, device: Device, also: Mapping[str, str] = MappingProxyType({})) -> None:
    """Unplug the device from any option. If the guest doesn't release it, the device remains.

    ``also``: parameters of the removal. Raises HypervisorError if the guest doesn't release it;
    an ApiError with ``in_use`` names a disk that isn't freed since a snapshot names it.
    """
    if look(vm, device).gone:
        return

    def change(_: Config, pending: list[Mapping[str, Any]]) -> dict[str, str]:
        now = seen(pending, device)
        if now.slot is None:
            return {"revert": str(now.waiting)}
        return {"delete": now.slot, **also}

    problem: ApiError | None = None
    try:
        _change(vm, device, lambda after: after.gone, change)
    except ApiError as error:
        problem = error
    now = _look_after(vm, device)
    if now.gone:
        return
    if not now.leaving:
        raise problem or refused(f"The {device.what} is still there.")
    _take_back(vm, device)
    if problem is not None and problem.in_use is not None:
        raise problem
    raise refused(f"The guest does not let go of the {device.what}.") from problem


def _take_back(vm: Vm, device: Device) -> None:
    """Make a removal that is pending none, so that the next start changes nothing."""

    def change(_: Config, pending: list[Mapping[str, Any]]) -> dict[str, str]:
        return {"revert": str(seen(pending, device).slot)}

    _change(vm, device, lambda after: not after.leaving, change)


def look(vm: Vm, device: Device) -> Seen:
    """Return how a device stands now."""
    return seen(_pending(vm), device)


def _look_after(vm: Vm, device: Device) -> Seen:
    """Look what became of a change; once more if that fails, for the change may be made."""
    try:
        return look(vm, device)
    except ApiError:
        return look(vm, device)


def _pending(vm: Vm) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = vm.shared.client.get(f"{vm.path}/pending")
    return found


def _change(
    vm: Vm,
    device: Device,
    done: Callable[[Seen], bool],
    change: Callable[[Config, list[Mapping[str, Any]]], dict[str, str]],
) -> None:
    """Write the change unless it is seen done, with the digest of the configuration that passed
    the ownership fence."""

    def call() -> Any:
        config = vm.fence()
        values = change(config, _pending(vm))
        return vm.shared.client.post(f"{vm.path}/config", digest=config["digest"], **values)

    vm.converge(lambda: done(look(vm, device)), call, look_first=False)


def refused(text: str) -> HypervisorError:
    """Return the error of a device that the VM doesn't take, or give away."""
    return HypervisorError(Category.CONFIGURATION, text, verdict=Verdict.FATAL)
