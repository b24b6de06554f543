"""Render a decision of the scheduler: which host, of how many, and why not the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from common.counting import counted
from common.messages.scheduling import Change
from common.story import suggestions
from common.story.labels import label
from common.story.text import Line, duration, one_line

Facts: TypeAlias = Mapping[str, Any]

#: hosts named for each filter and in the scores; the rest is counted (``-f json`` has all)
_MOST = 5


def decision_lines(decision: Facts) -> Iterator[Line]:
    """Yield the lines of a decision.

    An administrator's has hosts, reasons and scores; an owner's only ``placed``, the reason, and
    which filters refused. The reason says also what would have worked.
    """
    considered = (f"  {how_many(decision)}".rstrip(), "dim")
    if decision.get("host"):
        yield (("host ", ""), (one_line(decision["host"]), "bold green"), considered)
    elif decision.get("placed"):
        yield (("a host was found", "bold green"), considered)
    else:
        reason = one_line(decision.get("reason") or "no reason was given")
        yield (("no host: ", "bold red"), (reason, "red"), considered)
        for change in () if decision.get("reason") else changes_that_would_do(decision):
            yield (("  would do: ", "dim"), (change, "green"))
    yield from _claims(decision)
    yield from _scores(decision)
    yield from _refusals(decision)
    alternates = [one_line(a.get("host")) for a in decision.get("alternates") or ()]
    if alternates:
        yield (("  would have done as well: ", "dim"), (", ".join(alternates), ""))


def how_many(decision: Facts) -> str:
    """Return how many hosts were considered, and how long it took, where known."""
    if decision.get("considered") is None:
        return ""
    took = f" in {duration(decision['seconds'])}" if decision.get("seconds") else ""
    return f"{counted(decision['considered'], 'host')} considered{took}"


def changes_that_would_do(decision: Facts) -> list[str]:
    """Return the smallest change that would have worked, and others as small."""
    suggestion = decision.get("suggestion") or {}
    ways = (suggestion, *(suggestion.get("others") or ()))
    return [change for change in map(least_change, ways) if change]


def least_change(suggestion: Facts) -> str:
    """Return the smallest change that would have worked: the host, and what is to be otherwise.

    >>> change = {"field": "memory_mib", "asked": 8192, "works": 512}
    >>> least_change({"host": "pve1", "changes": [change]})
    'pve1, if the memory were 512 MiB instead of 8 GiB'
    """
    changes = tuple(
        Change(str(one.get("field")), one.get("asked"), one.get("works"))
        for one in suggestion.get("changes") or ()
    )
    words = suggestions.otherwise(changes)
    return f"{one_line(suggestion.get('host') or '')}, {one_line(words)}" if words else ""


def _claims(decision: Facts) -> Iterator[Line]:
    for claim in decision.get("claims") or ():
        result = one_line(claim.get("result") or "")
        style = "green" if result in ("claimed", "ok") else "yellow"
        yield (
            ("  claim ", "dim"),
            (f"{one_line(claim.get('host'))}: ", ""),
            (result, style),
            (retries(claim), "dim"),
        )


def retries(claim: Facts) -> str:
    """How often a claim was begun again: placement's generations, the conductor's transaction."""
    retries = (("generation_retries", "generation"), ("commit_retries", "commit"))
    return "".join(
        f", {counted(claim[name], f'{what} retry', f'{what} retries')}"
        for name, what in retries
        if isinstance(claim.get(name), int)
    )


def _scores(decision: Facts) -> Iterator[Line]:
    scores = dict(decision.get("scores") or {})
    # A weigher that gave nothing to any host made no difference.
    deciding = dict.fromkeys(
        name for known in scores.values() for name, value in known.items() if value
    )
    deciding.pop("total", None)
    for host, known in list(scores.items())[:_MOST]:
        parts = dict(known)
        total = parts.pop("total", sum(parts.values()))
        each = "  ".join(f"{label(name)} {parts[name]:+.3f}" for name in deciding if name in parts)
        yield (("  score ", "dim"), (f"{one_line(host)} {total:+.3f}", ""), (f"  {each}", "dim"))
    yield from _rest(len(scores), "scored")


def _refusals(decision: Facts) -> Iterator[Line]:
    for name in decision.get("refused_by") or ():
        yield (("  refused by ", "dim"), (label(name), "yellow"))
    for name, refused in (decision.get("refused") or {}).items():
        hosts = {} if isinstance(refused, int) else refused
        count = (decision.get("counts") or {}).get(
            name, refused if isinstance(refused, int) else len(hosts)
        )
        yield (
            ("  refused by ", "dim"),
            (label(name), "yellow"),
            (f": {counted(count, 'host')}", ""),
        )
        for host, reason in sorted(hosts.items())[:_MOST]:
            yield ((f"    {one_line(host)}: ", ""), (one_line(reason), "yellow"))
        yield from _rest(count if hosts else 0, "refused")


def _rest(count: int, what: str) -> Iterator[Line]:
    if count > _MOST:
        yield ((f"    and {count - _MOST} more {what}", "dim"),)
