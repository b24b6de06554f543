"""What became of all cases, however many processes took a part of them: one table, one count.

    python -m tests.chaos.summary FOLDER

prints the table of a folder of results.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

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


class Results:
    """Of one unit of cases; in a folder, they outlive a run that is ended before its table.

    Cases that failed are forgotten, so that a later run has them again.
    """

    def __init__(self, folder: str | None, unit: str) -> None:
        self._path = Path(folder) / f"{unit}.jsonl" if folder else None
        self.lines: list[Line] = []
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch()
            self.lines = [line for line in read(self._path) if not line["problem"]]
            self._path.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in self.lines))

    def cases(self) -> set[str]:
        """Names of the cases that have been run."""
        return {line["case"] for line in self.lines}

    def add(self, line: Line) -> None:
        """Keep what became of a case."""
        self.lines.append(line)
        if self._path is not None:
            with self._path.open("ab") as file:
                file.write(orjson.dumps(line) + b"\n")


def read(path: Path) -> list[Line]:
    """The lines of a file; of a line that was being written when the run was ended, nothing."""
    whole = path.read_bytes().splitlines(keepends=True)
    return [orjson.loads(line) for line in whole if line.endswith(b"\n")]


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
    output = [f"{'step':<13}{'what became of it':<22}" + "".join(f"{one:>18}" for one in HEADS)]
    rows = sorted(counts(lines).items(), key=lambda item: (item[0] == ALL, item[0]))
    for (kind, action), count in rows:
        output.append(f"{kind:<13}{action:<22}" + "".join(f"{count[head]:>18}" for head in HEADS))
    output += [f"HEALED {line['case']}: {line['healed']}" for line in lines if line["healed"]]
    output += [f"FAILED {line['case']}: {line['problem']}" for line in lines if line["problem"]]
    return "\n".join(output)


if __name__ == "__main__":
    paths = sorted(Path(sys.argv[1]).glob("*.jsonl"))
    print(table([line for path in paths for line in read(path)]))
