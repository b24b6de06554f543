"""A decision as a matrix: a row for each host, a column for each filter that refused one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: the column of the filters that refused no host: their names aren't kept
EVERY, EVERY_OTHER = "every filter", "every other filter"


@dataclass(frozen=True)
class Verdict:
    """A filter's answer for a host: passed, refused (the text is the reason), not asked (None)."""

    passed: bool | None
    text: str


@dataclass(frozen=True)
class Row:
    """One host."""

    name: str
    chosen: bool
    verdicts: tuple[Verdict, ...]
    scores: tuple[float | None, ...]


@dataclass(frozen=True)
class Matrix:
    """Columns and rows; hosts that were scored come first, best first."""

    filters: tuple[str, ...]
    weighers: tuple[str, ...]
    rows: tuple[Row, ...]


def matrix(decision: Mapping[str, Any]) -> Matrix:
    """Return the matrix of an operator's decision; an owner's names no hosts and has no rows.

    Filters run in their order and the first to refuse ends it: those before it passed the host,
    those after it were not asked.
    """
    refused = {
        name: hosts
        for name, hosts in (decision.get("refused") or {}).items()
        if isinstance(hosts, Mapping)
    }
    scores = decision.get("scores") or {}
    # A weigher that gave nothing to any host made no difference.
    weighers = dict.fromkeys(
        name for given in scores.values() for name, value in given.items() if value
    )
    if any("total" in given for given in scores.values()):
        weighers.pop("total", None)
        weighers["total"] = None
    names = dict.fromkeys(scores)
    names |= dict.fromkeys(host for hosts in refused.values() for host in sorted(hosts))
    if decision.get("host"):
        names.setdefault(str(decision["host"]))
    rows = tuple(
        Row(
            name,
            name == decision.get("host"),
            _verdicts(refused, name),
            tuple((scores.get(name) or {}).get(weigher) for weigher in weighers),
        )
        for name in names
    )
    columns = (*refused, EVERY_OTHER if refused else EVERY) if rows else ()
    return Matrix(columns, tuple(weighers), rows)


def _verdicts(refused: Mapping[str, Mapping[str, str]], host: str) -> tuple[Verdict, ...]:
    verdicts = []
    asked = True
    for hosts in refused.values():
        if not asked:
            verdicts.append(Verdict(None, "–"))
        elif host in hosts:
            verdicts.append(Verdict(False, hosts[host]))
            asked = False
        else:
            verdicts.append(Verdict(True, "✓"))
    # Of a host that was refused, those before passed it and those after were not asked.
    verdicts.append(Verdict(True, "✓") if asked else Verdict(None, "–"))
    return tuple(verdicts)
