"""Why nowhere: one sentence with the counts of each filter and the nearest miss."""

from __future__ import annotations

from collections.abc import Mapping


def sentence(considered: int, refused: Mapping[str, Mapping[str, str]]) -> str:
    """What the owner of the server reads when no host would do; names no host."""
    if not considered:
        return "No valid host was found: there is no compute host."
    counts = ", ".join(
        f"{len(hosts)} by {name}" for name, hosts in sorted(refused.items(), key=_most_first)
    )
    example = _example(refused)
    return f"No valid host was found: of {considered} hosts, {counts or 'none'} refused{example}."


def _most_first(item: tuple[str, Mapping[str, str]]) -> tuple[int, str]:
    return (-len(item[1]), item[0])


def _example(refused: Mapping[str, Mapping[str, str]]) -> str:
    """The reason of the filter that refused last: who got furthest came nearest."""
    for hosts in reversed(list(refused.values())):
        for host in sorted(hosts):
            return f" (e.g. {hosts[host]})"
    return ""
