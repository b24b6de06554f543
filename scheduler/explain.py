"""Why nowhere: one sentence with the counts of each filter and the nearest miss, and one more
with the smallest change that would have worked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from common.messages.scheduling import Change, Suggestion, Way
from common.server_groups import MAX_PER_HOST
from scheduler.hosts import Host

#: from a host's name and the reason why it was refused: the reason as anybody may read it
Unnamed = Callable[[str, str], str]

#: filters whose reasons name what is the operators' alone → what the owner reads instead
_FOR_OPERATORS: Mapping[str, str] = {
    "aggregate_image_properties_isolation": "its aggregates don't take such images",
    "aggregate_instance_extra_specs": "its aggregates don't offer what the flavor asks",
    "forced_host": "another host was asked for",
    "ha_rule": "the rules of high availability don't allow it",
    "node_healthy": "the node is not healthy",
}


def sentence(
    considered: int,
    refused: Mapping[str, Mapping[str, str]],
    suggestion: Suggestion | None = None,
    told: Unnamed = lambda _, reason: reason,
) -> str:
    """What the owner of the server reads when no host would do; names no host.

    ``told`` takes from a reason what only operators read.
    """
    if not considered:
        return "No valid host was found: there is no compute host."
    counts = ", ".join(
        f"{len(hosts)} by {name}" for name, hosts in sorted(refused.items(), key=_most_first)
    )
    example = _example(refused, suggestion, told)
    text = f"No valid host was found: of {considered} hosts, {counts or 'none'} refused{example}."
    return f"{text} {advice(suggestion)}" if suggestion else text


def unnamed(host: Host, reason: str) -> str:
    """The reason without the names of the host's storages, node and cluster."""
    facts = host.facts
    storages = {facts.vm_storage, *(storage.name for storage in facts.storages)}
    for names, instead in (
        (storages, "its storage"),
        ({facts.host, facts.node}, "the host"),
        ({facts.cluster}, "its cluster"),
    ):
        for name in sorted(filter(None, names), key=len, reverse=True):
            word = rf"(?:\bstorage )?(?<![\w.-]){re.escape(name)}(?![\w-])"
            reason = re.sub(word, instead, reason)
    return reason


def not_offered(count: int) -> str:
    """What is read when hosts passed every filter that placement offers none of."""
    hosts = "1 host" if count == 1 else f"{count} hosts"
    return (
        f"No valid host was found: {hosts} would do, but placement offers none of them. Room may "
        "have come free just now, or their inventories have limits of their own."
    )


def advice(suggestion: Suggestion) -> str:
    """What would have worked, e.g. "With 2048 MiB less RAM, 1 host would do."; names no host."""
    first, *others = [_way(way) for way in (suggestion, *suggestion.others)]
    return "; ".join([f"{first[:1].upper()}{first[1:]} would do", *others]) + "."


def _way(way: Way) -> str:
    words = [_WORDS[change.field](change) for change in way.changes if change.field in _WORDS]
    return f"{' and '.join(words)}, {'1 host' if way.hosts == 1 else f'{way.hosts} hosts'}"


def _less(unit: str) -> Callable[[Change], str]:
    return lambda change: f"with {change.asked - change.works} {unit}"


def _without_networks(change: Change) -> str:
    rest = list(change.works)
    gone = [bridge for bridge in dict.fromkeys(change.asked) if bridge not in rest]
    return f"without network {', '.join(gone)}"


def _without_one(what: str) -> Callable[[Change], str]:
    def words(change: Change) -> str:
        gone = sorted(change.asked.keys() - change.works.keys())
        return f"without {what} {', '.join(gone)}"

    return words


#: a network's VLANs go with it
_WORDS: Mapping[str, Callable[[Change], str]] = {
    "availability_zone": lambda change: f"in zone {change.works}",
    "force_host": lambda change: "without a forced host",
    "networks": _without_networks,
    MAX_PER_HOST: lambda change: f"in a group with {MAX_PER_HOST} {change.works}",
    "group_policy": lambda change: f"in a group with policy {change.works}",
    "group": lambda change: "without its server group",
    "hints": _without_one("the hint"),
    "extra_specs": _without_one("the flavor's"),
    "image_properties": _without_one("the image's"),
    "vcpus": _less("VCPU less"),
    "memory_mib": _less("MiB less RAM"),
    "disk_gib": _less("GiB less disk"),
}


def _most_first(item: tuple[str, Mapping[str, str]]) -> tuple[int, str]:
    return (-len(item[1]), item[0])


def _example(
    refused: Mapping[str, Mapping[str, str]], suggestion: Suggestion | None, told: Unnamed
) -> str:
    """The reason of the host that came nearest: it needs the least change, or, where no change
    helps, the last of the filters refused it."""
    for by, hosts in reversed(list(refused.items())):
        name = min(hosts) if suggestion is None else suggestion.host
        if name in hosts:
            return f" (e.g. {_FOR_OPERATORS.get(by) or told(name, hosts[name])})"
    return ""
