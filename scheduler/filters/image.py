"""Can the node run this image, and get its disk?"""

from __future__ import annotations

from common.messages.scheduling import Requested
from scheduler.columnar import by, refusing
from scheduler.fleet import Fleet, Mask
from scheduler.hosts import Host

#: image property → what the node must be; Glance's names
_ARCHITECTURE = ("hw_architecture", "architecture")
_HYPERVISOR_TYPE = ("img_hv_type", "hypervisor_type")
_ALIASES = {"amd64": "x86_64", "arm64": "aarch64", "kvm": "qemu"}


def _kind(host: Host) -> tuple[str, str]:
    return host.facts.architecture, host.facts.hypervisor_type


def _images(host: Host) -> tuple[str, ...]:
    return host.facts.images


@by(_kind)
def image_properties(kind: tuple[str, str], request: Requested) -> str | None:
    """Refuse nodes of another architecture or hypervisor type than the image names."""
    for names, actual in zip((_ARCHITECTURE, _HYPERVISOR_TYPE), kind, strict=True):
        wanted = next(
            (request.image_properties[n] for n in names if n in request.image_properties), None
        )
        if wanted is not None and _plain(wanted) != _plain(actual):
            return f"{actual}, the image needs {wanted}"
    return None


def _unreached(fleet: Fleet, request: Requested) -> Mask | None:
    return None if request.image_id is None else ~fleet.having(_images, request.image_id)


@refusing(_unreached)
def image_reach(host: Host, request: Requested) -> str | None:
    """Refuse nodes that can't get the image at all."""
    if request.image_id is None or request.image_id in host.facts.images:
        return None
    return f"image {request.image_id} is on none of its storages"


def _plain(text: str) -> str:
    lower = text.lower()
    return _ALIASES.get(lower, lower)
