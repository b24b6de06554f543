"""What became of all cases, however many processes took a part of them: one table, one count."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

PROPERTY = "chaos"
"""The user property of a test's report that carries ``lines`` of results."""

HEADS = (
    "cases",
    "survived",
    "leaks or overdue",
    "healed",
    "not met",
    "active",
    "error",
    "operator",
)
ALL = ("all", "")

Line = Mapping[str, Any]


def counts(lines: Iterable[Line]) -> dict[tuple[str, str], collections.Counter[str]]:
    """By kind of step and by what became of it, and all together; see ``enumeration.line_of``."""
    rows: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(
        collections.Counter
    )
    for line in lines:
        for key in ((line["kind"], line["action"]), ALL):
            count = rows[key]
            count["cases"] += 1
            count["survived"] += not line["problem"]
            count["leaks or overdue"] += bool(line["problem"])
            count["healed"] += bool(line["healed"])
            count["not met"] += not line["met"]
            count["active"] += line["state"] == "active"
            count["error"] += line["state"] == "error"
            count["operator"] += bool(line["operator"])
    return rows


def table(lines: Sequence[Line]) -> str:
    """The counts for people; below them one line for each case that did not end well."""
    told = [f"{'step':<13}{'what became of it':<22}" + "".join(f"{one:>18}" for one in HEADS)]
    rows = sorted(counts(lines).items(), key=lambda item: (item[0] == ALL, item[0]))
    for (kind, action), count in rows:
        told.append(f"{kind:<13}{action:<22}" + "".join(f"{count[head]:>18}" for head in HEADS))
    told += [f"HEALED {line['case']}: {line['healed']}" for line in lines if line["healed"]]
    told += [f"FAILED {line['case']}: {line['problem']}" for line in lines if line["problem"]]
    return "\n".join(told)
