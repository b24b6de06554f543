"""Why there is no host, in words for operators: with numbers, and what would have worked.

The conductor writes the words for owners (``conductor.servers.create.no_valid_host``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from common.counting import counted
from common.messages.scheduling import Suggestion
from common.story.suggestions import listed, numbers, others
from scheduler import filters
from scheduler.filters.resources import Shortage

#: the filter by what is promised
RESOURCES = "resources"
#: most characters of the one reason that is given as an example
_LONGEST = 300


def sentence(
    considered: int,
    refused: Mapping[str, Mapping[str, str]],
    suggestion: Suggestion | None = None,
    shortages: Sequence[Shortage] = (),
) -> str:
    """Return why none of the hosts would do, and what would have worked."""
    if not considered:
        return "There is no compute host."
    hosts = "The only host" if considered == 1 else f"None of {considered} hosts"
    text = f"{hosts} {_why(considered, refused, suggestion, shortages)}."
    return f"{text} {advice(suggestion)}" if suggestion else text


def not_offered(count: int) -> str:
    """Return a sentence for hosts that passed every filter, but that placement doesn't offer."""
    return (
        f"{counted(count, 'host')} would do, but placement offers none of them. Room may have "
        "come free just now, or their inventories have limits of their own."
    )


def advice(suggestion: Suggestion) -> str:
    """Return what would have worked, as ``It would fit with 520704 MiB or less.``; no hosts."""
    ways = [
        " ".join(filter(None, (others(way), numbers(way))))
        for way in (suggestion, *suggestion.others)
    ]
    return f"It would fit {listed(ways, 'or')}."


def _why(
    considered: int,
    refused: Mapping[str, Mapping[str, str]],
    suggestion: Suggestion | None,
    shortages: Sequence[Shortage],
) -> str:
    """Return the reason, to follow the words that name the hosts."""
    nearest, said = _nearest(refused, suggestion), filters.words()
    short = "; ".join(map(str, shortages))
    if len(refused) == 1 and RESOURCES in refused:
        verb = "has no room" if considered == 1 else "has room"
        example = nearest.get(RESOURCES, "")
        return f"{verb}: {short}" if short else f"{verb} for all of it{example}"
    parts = []
    for name, hosts in sorted(refused.items(), key=lambda one: (-len(one[1]), one[0])):
        more = f" ({short})" if name == RESOURCES and short else nearest.get(name, "")
        count = "" if considered == 1 else f"{len(hosts)} with "
        parts.append(f"{count}{said.get(name, f'a refusal by {name}')}{more}")
    verb = "won't do" if considered == 1 else "will do"
    return f"{verb}: {'; '.join(parts) or 'no reason is known'}"


def _nearest(
    refused: Mapping[str, Mapping[str, str]], suggestion: Suggestion | None
) -> dict[str, str]:
    """Return the filter that refused the nearest host, with its reason.

    That host needs the least change, or, if no change helps, the last of the filters refused it.
    """
    for by, hosts in reversed(list(refused.items())):
        name = min(hosts) if suggestion is None else suggestion.host
        if name in hosts:
            return {by: f" ({name}: {hosts[name][:_LONGEST]})"}
    return {}
