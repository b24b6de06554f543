"""The scheduler's suggestion in words: how a request would have to change. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from common.messages.scheduling import Change, Way
from common.resources.server_groups import MAX_PER_HOST
from common.story.amounts import mib

#: field of the request → (unit, unit where it is the only one)
SIZES: Mapping[str, tuple[str, str]] = {
    "vcpus": ("VCPU", "VCPU"),
    "memory_mib": ("MiB RAM", "MiB"),
    "disk_gib": ("GiB disk", "GiB disk"),
}


#: field of the request → the thing, and its amount in the unit that suits it
_THINGS: Mapping[str, tuple[str, Callable[[int], str]]] = {
    "vcpus": ("the VCPUs", str),
    "memory_mib": ("the memory", mib),
    "disk_gib": ("the disk", lambda gib: f"{gib:,} GiB"),
}


def sizes(way: Way) -> dict[str, int]:
    """Return the sizes that would have to be smaller: {field: largest that fits}."""
    return {change.field: change.works for change in way.changes if change.field in SIZES}


def others(way: Way) -> str:
    """Return all but sizes, e.g. ``in zone az2 and without network vmbr1``; names no host."""
    words = [_WORDS[change.field](change) for change in way.changes if change.field in _WORDS]
    return " and ".join(words)


def otherwise(changes: Sequence[Change]) -> str:
    """Return what would have to be otherwise, with old and new sizes; empty: nothing is known.

    >>> otherwise([Change("disk_gib", 1_000_000, 59_601), Change("force_host", "pve9", None)])
    'if the disk were 59,601 GiB instead of 1,000,000 GiB, and without a forced host'
    """
    sizes = [
        f"{thing} were {said(one.works)} instead of {said(one.asked)}"
        for one in changes
        if one.field in _THINGS
        for thing, said in (_THINGS[one.field],)
    ]
    words = [_WORDS[one.field](one) for one in changes if one.field in _WORDS]
    parts = [*([f"if {listed(sizes)}"] if sizes else []), *([listed(words)] if words else [])]
    return ", and ".join(parts)


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
