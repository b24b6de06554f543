"""Filters by image: can the node run it, and get its disk?"""

from __future__ import annotations

import re

from common.messages.scheduling import RequestSpec
from scheduler.columnar.forms import for_all_hosts, host_fact, refusing
from scheduler.filters import host_filter
from scheduler.filters.specs import compiled_version
from scheduler.hosts.columns import HostColumns, Mask
from scheduler.hosts.host import Host

#: image property → the node's property; Glance's names
_ARCHITECTURE = ("hw_architecture", "architecture")
_HYPERVISOR_TYPE = ("img_hv_type", "hypervisor_type")
#: the required version of the hypervisor
_VERSION = ("img_hv_requested_version", "img_hv_requires", "hypervisor_version_requires")
_ASKED = re.compile(r"\s*(?P<how>[<>=!]=|[<>=])\s*(?P<version>[0-9.]+)\s*", re.ASCII)
_ALIASES = {"amd64": "x86_64", "arm64": "aarch64", "kvm": "qemu"}


def _kind(host: Host) -> tuple[str, str, str]:
    facts = host.facts
    return facts.architecture, facts.hypervisor_type, facts.hypervisor_version


def _place(host: Host) -> tuple[str, str, str]:
    return host.facts.cluster, host.facts.node, host.facts.vm_storage


def _images(host: Host) -> tuple[str, ...]:
    return host.images


@host_filter(after="capabilities", words="not what the image needs")
@host_fact(_kind)
def image_properties(kind: tuple[str, str, str], request: RequestSpec) -> str | None:
    """Refuse nodes of another architecture, hypervisor type or version than the image needs."""
    *kinds, version = kind
    for names, actual in zip((_ARCHITECTURE, _HYPERVISOR_TYPE), kinds, strict=True):
        wanted = next(
            (request.image_properties[n] for n in names if n in request.image_properties), None
        )
        if wanted is not None and _plain(wanted) != _plain(actual):
            return f"{actual}, the image needs {wanted}"
    for name in _VERSION:
        wanted = request.image_properties.get(name)
        if wanted and not _is(version, wanted):
            return f"version {version or 'unknown'}, the image needs {name}={wanted}"
    return None


def _is(version: str, wanted: str) -> bool:
    """Return whether a version meets all conditions, e.g. ``>=8.4, <9``; unreadable ones fail."""
    parts = [_ASKED.fullmatch(part) for part in wanted.split(",")]
    return all(
        part is not None and compiled_version(f"{part['how']} {part['version']}")(version)
        for part in parts
    )


def _unreached(columns: HostColumns, request: RequestSpec) -> Mask | None:
    home = request.image_home
    if home is not None:
        return ~columns.where(_place, lambda place: home.reached_from(*place))
    return None if request.image_id is None else ~columns.having(_images, request.image_id)


@host_filter(after="image_properties", words="no storage with the image")
@refusing(_unreached, same_reason=for_all_hosts)
def image_reach(host: Host, request: RequestSpec) -> str | None:
    """Refuse nodes that can't get the image at all; a server's image never leaves its cluster."""
    home = request.image_home
    if home is not None:
        if home.reached_from(*_place(host)):
            return None
        return f"image {request.image_id}, made of a server, is only on {home}"
    if request.image_id is None or request.image_id in host.images:
        return None
    return f"image {request.image_id} is on none of its storages"


def _plain(text: str) -> str:
    lower = text.lower()
    return _ALIASES.get(lower, lower)
