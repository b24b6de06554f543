"""Why servers find no host, in words for their owner, with what would work instead. Pure.

The owner reads no host, no host's numbers and no number of hosts: only their flavors, the zones
they may name, and their own request.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from common.counting import counted
from common.messages.scheduling import ROOM_FILTERS, Decision, RequestSpec, Suggestion
from common.story.suggestions import listed, others, sizes
from conductor.plans import CreateParams
from conductor.store.servers.flavor_offers import Limits, Offer

#: number of flavors that are tried, and named
_TRIED, _NAMED = 6, 3
#: fields of a suggestion that neither flavors nor groups change
_TAKEN_OVER = {"availability_zone", "force_host", "networks", "vlans", "hints", "image_properties"}
#: field → the flavor's field that would be smaller
_LESS = {"vcpus": "fewer VCPUs", "memory_mib": "less RAM", "disk_gib": "less disk"}


def limits(decision: Decision, asked: CreateParams) -> Limits | None:
    """Return the limits of smaller flavors; None if another flavor wouldn't help.

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
    """Return the largest flavors that may do, the largest first: few, as each is tried."""
    found = [offer for offer in offers if within.allow(offer)]
    found.sort(key=lambda one: (-one.memory_mib, -one.vcpus, -one.disk_gib, one.name))
    return found[:_TRIED]


def with_flavor(requested: RequestSpec, suggestion: Suggestion, offer: Offer) -> RequestSpec:
    """Return the request with another flavor, and the rest of the suggestion."""
    values = {
        change.field: change.works for change in suggestion.changes if change.field in _TAKEN_OVER
    }
    return dataclasses.replace(
        requested,
        vcpus=offer.vcpus,
        memory_mib=offer.memory_mib,
        disk_gib=(0 if requested.volume_backed else offer.disk_gib) + offer.local_gib,
        extra_specs=offer.extra_specs,
        **values,
    )


def too_few(decisions: Sequence[Decision], least: int) -> str:
    """Return why none of a create's servers is built; empty: at least so many have a host."""
    placed = sum(decision.found for decision in decisions)
    if placed >= least:
        return ""
    why = next(decision for decision in decisions if not decision.found)
    if not placed:
        return why.reason or "No valid host was found."
    some = counted(placed, "server")
    text = f"Hosts were found for {some}, and min_count asks for {least}: none is built."
    return f"{text} For the next one: {why.reason}" if why.reason else text


def all_or_none(decisions: Sequence[Decision], least: int) -> list[Decision]:
    """Return the decisions about a create's servers: all, or none below ``least`` hosts.

    The scheduler claims none of them then, unless other requests took some of what it chose. Such
    claims are released when those servers' builds end.
    """
    reason = too_few(decisions, least)
    if not any(decision.found for decision in decisions) or not reason:
        return list(decisions)
    return [_given_up(decision, reason, least) for decision in decisions]


def owner_reason(least: int) -> str:
    """Return what owners read if there are fewer hosts than ``min_count``."""
    return (
        "No valid host was found: there are not enough hosts available for the "
        f"{counted(least, 'server')} that min_count asks for, so none is built."
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
    """Return what the owner reads; ``flavors`` would do."""
    want_of_room = decision.counts and decision.counts.keys() <= ROOM_FILTERS
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
