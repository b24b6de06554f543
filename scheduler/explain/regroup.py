"""Possible changes to a server's group, the smallest concession first."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from common.messages.scheduling import Change
from common.resources.server_groups import MAX_PER_HOST, SOFT, STRICT, GroupFacts, Policy

#: how many values of max_server_per_host are tried at most
_TRIED = 5


def _larger(group: GroupFacts) -> Iterator[GroupFacts | None]:
    """Yield groups that allow more servers on one host, the smallest number first."""
    if group.policy == Policy.ANTI_AFFINITY:
        full = {number for number in group.members.values() if number >= group.max_per_host}
        for number in sorted(full)[:_TRIED]:
            yield dataclasses.replace(group, max_per_host=number + 1)


def _softer(group: GroupFacts) -> Iterator[GroupFacts | None]:
    """Yield the group with the soft form of its policy."""
    if group.policy in STRICT:
        yield dataclasses.replace(group, policy=SOFT[Policy(group.policy)])


def _left(group: GroupFacts) -> Iterator[GroupFacts | None]:
    """Yield no group."""
    if group.policy in STRICT:
        yield None


#: name of a change → the groups to try
WAYS: Mapping[str, Callable[[GroupFacts], Iterator[GroupFacts | None]]] = {
    MAX_PER_HOST: _larger,
    "group_policy": _softer,
    "group": _left,
}


def changes(asked: GroupFacts | None, works: GroupFacts | None) -> list[Change]:
    """Return the differences; without the group itself, which names hosts."""
    if asked is None or asked == works:
        return []
    if works is None:
        return [Change("group", asked.uuid, None)]
    return [
        Change(name, before, after)
        for name, before, after in (
            (MAX_PER_HOST, asked.max_per_host, works.max_per_host),
            ("group_policy", asked.policy, works.policy),
        )
        if before != after
    ]


def changed(asked: GroupFacts | None, values: dict[str, Any]) -> GroupFacts | None:
    """Return the group with changes of these values, which are removed from ``values``."""
    found = {name: values.pop(name) for name in WAYS if name in values}
    if asked is None or "group" in found:
        return None
    return dataclasses.replace(
        asked,
        max_per_host=found.get(MAX_PER_HOST, asked.max_per_host),
        policy=found.get("group_policy", asked.policy),
    )
