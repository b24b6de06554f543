"""Memory and processors of a running VM, as its option `hotplug` allows.

Memory is added at once, and removed only if the guest releases it; the guest on the captured
server never does. Sockets and cores wait for the next start.
"""

from __future__ import annotations

import math

from simulator.state.model import Vm

_STATIC_MEGABYTES = 1024
_ALL = "network,disk,usb,memory,cpu"
_BELOW = (
    f"memory can't be lower than {_STATIC_MEGABYTES} MB at "
    "/usr/share/perl5/PVE/QemuServer/Memory.pm line 219.\n"
)
_KEPT = "400 Parameter verification failed.\ndimm0: error unplug memory module\n"
_TOO_MANY = "you can't add more vcpus than maxcpus\n"


def pluggable(vm: Vm, name: str) -> bool:
    """Return whether a running VM takes a change of that option at once."""
    kind = {"memory": "memory", "vcpus": "cpu"}.get(name)
    enabled = vm.config.get("hotplug", "network,disk,usb")
    return kind is not None and kind in (_ALL if enabled == "1" else enabled).split(",")


def problem(vm: Vm, name: str, value: str) -> str:
    """Return why a running VM refuses a change that it would take at once, or empty."""
    if not pluggable(vm, name):
        return ""
    if name == "vcpus":
        cores = int(vm.config.get("cores", "1")) * int(vm.config.get("sockets", "1"))
        return _TOO_MANY if int(value) > cores else ""
    wanted, present = _megabytes(value), _megabytes(vm.config.get("memory", "512"))
    if wanted < _STATIC_MEGABYTES:
        return _BELOW
    return _KEPT if wanted < present and vm.agent_ready == math.inf else ""


def _megabytes(text: str) -> int:
    return int(text.partition("=")[2] or text)
