"""The scheduler's suggestion in words: how a request would have to change. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from common.messages.scheduling import Change, Way
from common.resources.server_groups import MAX_PER_HOST

#: field of the request → (unit, unit where it is the only one)
SIZES: Mapping[str, tuple[str, str]] = {
    "vcpus": ("VCPU", "VCPU"),
    "memory_mib": ("MiB RAM", "MiB"),
    "disk_gib": ("GiB disk", "GiB disk"),
}


def sizes(way: Way) -> dict[str, int]:
    """Return the sizes that would have to be smaller: {field: largest that fits}."""
    return {change.field: change.works for change in way.changes if change.field in SIZES}


def others(way: Way) -> str:
    """Return all but sizes, e.g. ``in zone az2 and without network vmbr1``; names no host."""
    words = [_WORDS[change.field](change) for change in way.changes if change.field in _WORDS]
    return " and ".join(words)


def numbers(way: Way) -> str:
    """Return the sizes with their numbers, e.g. ``with 520704 MiB or less``; for operators."""
    most = sizes(way)
    if not most:
        return ""
    amounts = [f"{amount} {SIZES[field][len(most) == 1]}" for field, amount in most.items()]
    return f"with {listed(amounts)} or less"


def listed(words: Sequence[str], last: str = "and") -> str:
    """Return ``a``, ``a and b``, or ``a, b and c``."""
    *first, end = words
    return f"{', '.join(first)} {last} {end}" if first else end


def _without_networks(change: Change) -> str:
    rest = list(change.works)
    gone = [bridge for bridge in dict.fromkeys(change.asked) if bridge not in rest]
    return f"without network {', '.join(gone)}"


def _without_one(what: str) -> Callable[[Change], str]:
    def words(change: Change) -> str:
        gone = sorted(change.asked.keys() - change.works.keys())
        return f"{what} {', '.join(gone)}"

    return words


#: a network's VLANs go with it
_WORDS: Mapping[str, Callable[[Change], str]] = {
    "availability_zone": lambda change: f"in zone {change.works}",
    "force_host": lambda change: "without a forced host",
    "networks": _without_networks,
    MAX_PER_HOST: lambda change: f"in a group with {MAX_PER_HOST} {change.works}",
    "group_policy": lambda change: f"in a group with policy {change.works}",
    "group": lambda change: "without its server group",
    "hints": _without_one("without the hint"),
    "extra_specs": _without_one("with a flavor without"),
    "image_properties": _without_one("with an image without"),
}
