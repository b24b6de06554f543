"""What takes time in a test run: seconds and CPU seconds of each file, as JSON.

``pytest --times FILE`` writes it during a run, ``python -m tests.times FILE`` shows its sums.
CPU seconds are those of the test's process and of all its descendants, so services, databases and
brokers count for the file that uses them.
"""

from __future__ import annotations

import collections
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

_PROPERTY = "cpu_seconds"
SHOWN = 15
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(root: int) -> float:
    """CPU seconds of a process, its living descendants, and the dead ones it has waited for."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal():
            continue
        try:
            text = Path(entry.path, "stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            continue
        fields = text.rpartition(")")[2].split()
        pid = int(entry.name)
        parents[pid] = int(fields[1])
        used[pid] = sum(int(one) for one in fields[11:15])
    children = collections.defaultdict(list)
    for pid, parent in parents.items():
        children[parent].append(pid)
    waiting, ticks = [root], 0
    while waiting:
        pid = waiting.pop()
        ticks += used.get(pid, 0)
        waiting += children[pid]
    return ticks / _TICKS


class Meter:
    """Adds to the last report of each file what the process and its descendants have used."""

    def __init__(self) -> None:
        self._ends_file = True
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        self._before = cpu_seconds(os.getpid())

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Note whether this is the last test of its file here."""
        self._ends_file = nextitem is None or nextitem.path != item.path

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> Iterator[Any]:
        """Measure at the end of a file: what starts between two belongs to the second one."""
        report = yield
        if report.when == "teardown" and self._ends_file:
            now = cpu_seconds(os.getpid())
            # A process that ends without being waited for takes its sum along.
            used = max(0.0, now - self._before)
            report.user_properties.append((_PROPERTY, round(used, 2)))
            self._before = now
        return report


class Record:
    """Sums up all reports by file, in the process that has the terminal."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: dict[str, dict[str, float]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one phase of one test."""
        file = report.nodeid.partition("::")[0]
        sums = self._files.setdefault(file, {"seconds": 0.0, "cpu_seconds": 0.0, "tests": 0})
        sums["seconds"] += report.duration
        if report.when == "teardown":
            sums["tests"] += 1
            used = dict(report.user_properties).get(_PROPERTY)
            if used is not None:
                sums["cpu_seconds"] += used
                self._write()

    def _write(self) -> None:
        order: Sequence[str] = sorted(
            self._files, key=lambda one: self._files[one]["seconds"], reverse=True
        )
        rows = {
            file: {name: round(value, 1) for name, value in self._files[file].items()}
            for file in order
        }
        self._path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def main(path: Path) -> None:
    """Print the files that cost most, and the sums."""
    files = json.loads(path.read_text(encoding="utf-8"))
    print(f"{'CPU s':>8} {'seconds':>8} {'tests':>6}")
    for file in sorted(files, key=lambda one: -files[one]["cpu_seconds"])[:SHOWN]:
        row = files[file]
        print(f"{row['cpu_seconds']:8.1f} {row['seconds']:8.1f} {row['tests']:6.0f} {file}")
    sums = [sum(row[name] for row in files.values()) for name in ("cpu_seconds", "seconds")]
    print(f"{sums[0] / 60:.1f} minutes of CPU, {sums[1] / 60:.1f} minutes in tests")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
