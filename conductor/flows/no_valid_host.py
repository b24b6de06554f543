"""What becomes of servers that find no host, and what their owner reads: what of his own would
do. Pure.

He reads no host, no number of a host's and no number of hosts: only his flavors, the zones he may
name, and his own request.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from common.messages.scheduling import Decision, RequestSpec, Suggestion
from common.suggestions import listed, others, sizes
from conductor.plans import CreateParams

#: filters that refuse for want of room
_ROOM = {"resources", "storage_room"}
#: flavors that are tried, and named
_TRIED, _NAMED = 6, 3
#: what of a suggestion is no matter of flavors, nor of groups
_TAKEN_OVER = {"availability_zone", "force_host", "networks", "vlans", "hints", "image_properties"}
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
class Limits:
    """What a flavor must be like to be worth a try: it has less of what was too much."""

    vcpus: int | None
    """None: any number."""
    memory_mib: int | None
    disk_gib: int | None
    least_memory_mib: int
    """What the image needs."""
    least_disk_gib: int

    def allow(self, offer: Offer) -> bool:
        """Whether a flavor is within; a disk of 0 is as large as the image."""
        disk = offer.disk_gib or self.least_disk_gib
        return (
            (self.vcpus is None or offer.vcpus <= self.vcpus)
            and (self.memory_mib is None or offer.memory_mib <= self.memory_mib)
            and (self.disk_gib is None or disk <= self.disk_gib)
            and self.least_memory_mib <= offer.memory_mib
            and self.least_disk_gib <= disk
        )


def limits(decision: Decision, asked: CreateParams) -> Limits | None:
    """What would have to be less; None where another flavor wouldn't help.

    ``asked`` is what was asked of the build.
    """
    if decision.suggestion is None:
        return None
    most = {change.field: change.works for change in decision.suggestion.changes}
    if not most.keys() & {*_LESS, "extra_specs"}:
        return None
    return Limits(
        most.get("vcpus"),
        most.get("memory_mib"),
        most.get("disk_gib"),
        asked.least_memory_mib,
        asked.least_disk_gib,
    )


def candidates(offers: Iterable[Offer], within: Limits) -> list[Offer]:
    """The largest flavors that may do, the largest first: few, as each is tried."""
    found = [offer for offer in offers if within.allow(offer)]
    found.sort(key=lambda one: (-one.memory_mib, -one.vcpus, -one.disk_gib, one.name))
    return found[:_TRIED]


def with_flavor(requested: RequestSpec, suggestion: Suggestion, offer: Offer) -> RequestSpec:
    """The same request for a server of another flavor, with all else of the suggestion."""
    values = {
        change.field: change.works for change in suggestion.changes if change.field in _TAKEN_OVER
    }
    return dataclasses.replace(
        requested,
        vcpus=offer.vcpus,
        memory_mib=offer.memory_mib,
        disk_gib=offer.disk_gib,
        extra_specs=offer.extra_specs,
        **values,
    )


def too_few(decisions: Sequence[Decision], least: int) -> str:
    """Why none of the servers of one create is built; empty: at least so many have a host."""
    placed = sum(decision.host is not None for decision in decisions)
    if placed >= least:
        return ""
    why = next(decision for decision in decisions if decision.host is None)
    if not placed:
        return why.reason or "No valid host was found."
    text = f"Hosts were found for {placed} servers, and min_count asks for {least}: none is built."
    return f"{text} For the next one: {why.reason}" if why.reason else text


def all_or_none(decisions: Sequence[Decision], least: int) -> list[Decision]:
    """The decisions about the servers of one create; where some but fewer than ``least`` have a
    host, none has. The claims are given back as those servers' builds end.
    """
    reason = too_few(decisions, least)
    if not reason or all(decision.host is None for decision in decisions):
        return list(decisions)
    return [_given_up(decision, reason, least) for decision in decisions]


def owner_reason(least: int) -> str:
    """What owners read where fewer hosts are found than ``min_count`` asks for."""
    return (
        "No valid host was found: there are not enough hosts available for the "
        f"{least} servers that min_count asks for, so none is built."
    )


def _given_up(decision: Decision, reason: str, least: int) -> Decision:
    claims = decision.claims
    if decision.host is not None:
        claims = (*claims, {"host": decision.host, "result": "given back, as min_count isn't met"})
    return dataclasses.replace(
        decision,
        host=None,
        uuid=None,
        alternates=(),
        claims=claims,
        reason=reason,
        owner_reason=owner_reason(least),
    )


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
    if flavors := flavors[:_NAMED]:
        elsewhere = [
            change for change in suggestion.changes if change.field not in {*_LESS, "extra_specs"}
        ]
        rest = others(Suggestion(tuple(elsewhere), 0, ""))
        return f"{listed(flavors, 'or')} would fit{f' {rest}' if rest else ''}."
    less = [_LESS[field] for field in sizes(suggestion)]
    smaller = f"with a flavor of {listed(less)}" if less else ""
    ways = [" ".join(filter(None, (first, smaller))), *map(others, suggestion.others)]
    return f"It would fit {listed(ways, 'or')}."
