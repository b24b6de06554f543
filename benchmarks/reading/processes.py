"""CPU time and memory of processes and their descendants, from /proc."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

Processes = Mapping[str, Sequence[int]]
"""{service: IDs of its processes}."""

NOT_COUNTED = frozenset({"keystone", "simulator"})
"""What is no part of ours."""

_TICK = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found = [pid]
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += tree(child)
    return found


def cpu_seconds(processes: Processes) -> dict[str, float]:
    """Return the CPU seconds of each service; those of children that ended included."""
    return {name: sum(map(_cpu_seconds, pids)) for name, pids in processes.items()}


def own_cpu_seconds(processes: Processes) -> float:
    """Return the CPU seconds of all services that count."""
    found = cpu_seconds(processes)
    return sum(value for name, value in found.items() if name not in NOT_COUNTED)


def memory_mib(processes: Processes) -> dict[str, float]:
    """Return MiB of each service: the proportional set size."""
    return {name: round(sum(map(_pss_mib, pids)), 1) for name, pids in processes.items()}


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0  # it has ended: its parent has its time now
    return sum(map(int, fields[11:15])) / _TICK


def _pss_mib(pid: int) -> float:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0
