"""Interfaces of a VM that exists, found by their MAC address."""

from __future__ import annotations

import re
from typing import Any

from common.messages.commands import Nic
from compute.hypervisor.proxmox.cluster.vmid import Vm
from compute.hypervisor.proxmox.vm import devices
from compute.hypervisor.proxmox.vm.devices import Device
from compute.hypervisor.proxmox.vmconfig import marks

_NIC = re.compile(r"net[0-9]+")
MOST = 32


def device(mac: str) -> Device:
    """Return the interface with a MAC address in lower case."""
    return Device(_NIC, lambda value: has_mac(value, mac), "interface")


def has_mac(value: Any, mac: str) -> bool:
    """Return whether an interface's text has this MAC address."""
    return f"={mac}," in f"{value or ''},".lower()


def slots(wanted: int) -> list[str]:
    """Return where it may be, the wanted one first."""
    return [f"net{number}" for number in (wanted, *range(MOST))]


def plug(vm: Vm, nic: Nic, text: str, wanted: int) -> str:
    """Plug it, unless it is plugged; return its slot. Raises what ``devices.plug`` does.

    The same call writes the port and its addresses into the description.
    """
    return devices.plug(
        vm,
        device(nic.mac),
        text,
        slots(wanted),
        lambda config: {"description": marks.with_port(config, nic)},
    )


def unplug(vm: Vm, mac: str) -> None:
    """Unplug it, wherever it is. Raises what ``devices.unplug`` does."""
    devices.unplug(vm, device(mac))
