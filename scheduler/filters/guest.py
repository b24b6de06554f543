"""Filter by the virtual hardware that flavor and image ask for."""

from __future__ import annotations

import functools

import numpy as np

from common.counting import counted
from common.guest.asked import CannotError
from common.guest.hardware import Hardware, read, version
from common.messages.scheduling import RequestSpec
from scheduler.columnar.forms import by_facts, refusing
from scheduler.filters import host_filter
from scheduler.hosts.columns import HostColumns, Mask
from scheduler.hosts.host import Host

_Items = frozenset[tuple[str, str]]
#: (newest version of machine types, mapped devices by name)
_Has = tuple[str, frozenset[tuple[str, int]]]


def _has(host: Host) -> _Has:
    return host.facts.machine_version, frozenset(host.facts.devices.items())


def _unfit(columns: HostColumns, request: RequestSpec) -> Mask | None:
    found = _asked(request)
    if isinstance(found, str):
        return np.ones(len(columns), np.bool_)
    if found is None or not (found.machine_version or found.devices):
        return None
    return columns.where(_has, lambda has: _lacks(has, found) is not None)


@host_filter(after="ha_rule", words="not the hardware that is asked for")
@refusing(_unfit, same_reason=by_facts(_has))
def guest_hardware(host: Host, request: RequestSpec) -> str | None:
    """Refuse hardware that is impossible anywhere, or for this host's guests."""
    found = _asked(request)
    return found if found is None or isinstance(found, str) else _lacks(_has(host), found)


def _lacks(has: _Has, found: Hardware) -> str | None:
    newest, devices = has[0], dict(has[1])
    if found.machine_version and newest and found.machine_version > version(newest):
        return (
            f"its machine types are {newest} at the newest, hw_machine_type={found.machine} asked"
        )
    for name, count in found.devices:
        there = devices.get(name, 0)
        if there < count:
            return f"{counted(there, 'device')} {name} on the node, {count} asked"
    return None


def _asked(request: RequestSpec) -> Hardware | str | None:
    """Return the hardware, or why it is impossible; None: nothing is asked for."""
    if not request.extra_specs and not request.image_properties:
        return None
    return _read(
        request.vcpus,
        request.memory_mib,
        frozenset(request.extra_specs.items()),
        frozenset(request.image_properties.items()),
    )


@functools.lru_cache(maxsize=512)
def _read(
    vcpus: int, memory_mib: int, extra_specs: _Items, image_properties: _Items
) -> Hardware | str:
    try:
        return read(vcpus, memory_mib, dict(extra_specs), dict(image_properties))
    except CannotError as error:
        return str(error)
