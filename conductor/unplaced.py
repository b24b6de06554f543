"""What the owner of a server reads when no host was found: what of his own would do. Pure.

He reads no host, no number of a host's and no number of hosts: only his flavors, the zones he may
name, and his own request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.messages.scheduling import Decision, Suggestion
from common.suggestions import listed, others, sizes

#: filters that refuse for want of room
_ROOM = {"resources", "storage_room"}
#: flavors that are named
_NAMED = 3
#: field → what a smaller flavor has less of
_LESS = {"vcpus": "fewer VCPUs", "memory_mib": "less RAM", "disk_gib": "less disk"}


@dataclass(frozen=True)
class Offer:
    """A flavor that the server's project may use; sizes in MiB and GiB."""

    name: str
    vcpus: int
    memory_mib: int
    disk_gib: int
    extra_specs: Mapping[str, str]


@dataclass(frozen=True)
class Room:
    """What a flavor may have for the server to fit somewhere."""

    vcpus: int
    memory_mib: int
    disk_gib: int
    extra_specs: Mapping[str, str]
    least_memory_mib: int
    least_disk_gib: int

    def holds(self, offer: Offer) -> bool:
        """Whether a server of this flavor fits; a disk of 0 is as large as the image."""
        disk = offer.disk_gib or self.least_disk_gib
        return (
            offer.vcpus <= self.vcpus
            and self.least_memory_mib <= offer.memory_mib <= self.memory_mib
            and self.least_disk_gib <= disk <= self.disk_gib
            and dict(offer.extra_specs) == dict(self.extra_specs)
        )


def room(decision: Decision, flavor: Mapping[str, Any], params: Mapping[str, Any]) -> Room | None:
    """What would fit by the decision's suggestion; None where another flavor wouldn't help.

    ``flavor`` is the server's, ``params`` what was asked of the build.
    """
    suggestion = decision.suggestion
    if suggestion is None:
        return None
    works = {change.field: change.works for change in suggestion.changes}
    if not works.keys() & {*_LESS, "extra_specs"}:
        return None
    return Room(
        works.get("vcpus", flavor["vcpus"]),
        works.get("memory_mib", flavor["memory_mib"]),
        works.get("disk_gib", flavor["disk_gib"]),
        works.get("extra_specs", flavor.get("extra_specs", {})),
        params.get("least_memory_mib", 0),
        params.get("least_disk_gib", 0),
    )


def fitting(offers: Iterable[Offer], there: Room) -> list[str]:
    """The names of the largest flavors that would do, the largest first."""
    found = [offer for offer in offers if there.holds(offer)]
    found.sort(key=lambda one: (-one.memory_mib, -one.vcpus, -one.disk_gib, one.name))
    return [offer.name for offer in found[:_NAMED]]


def sentence(decision: Decision, flavors: Sequence[str]) -> str:
    """What the owner reads; ``flavors`` would do."""
    want_of_room = decision.counts and decision.counts.keys() <= _ROOM
    text = (
        f"No valid host was found: none {'has room' if want_of_room else 'can take the server'}."
    )
    if decision.suggestion is None:
        return text
    return f"{text} {_advice(decision.suggestion, flavors)}"


def _advice(suggestion: Suggestion, flavors: Sequence[str]) -> str:
    first = others(suggestion)
    if flavors:
        elsewhere = [
            change for change in suggestion.changes if change.field not in {*_LESS, "extra_specs"}
        ]
        rest = others(Suggestion(tuple(elsewhere), 0, ""))
        return f"{listed(flavors, 'or')} would fit{f' {rest}' if rest else ''}."
    less = [_LESS[field] for field in sizes(suggestion)]
    smaller = f"with a flavor of {listed(less)}" if less else ""
    ways = [" ".join(filter(None, (first, smaller))), *map(others, suggestion.others)]
    return f"It would fit {listed(ways, 'or')}."
