"""Measure everything by one command: ``python -m benchmarks.all --json``.

Each benchmark runs in a process of its own, one after the other. Beside its figures stand its
command, how long it took, and how busy others kept the machine: the CPU of processes that aren't
the benchmark's, in cores. A figure counts only where that is below 0.2. ``--short`` runs
each as briefly as it can, to see that it works; its figures mean nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

QUIET_CORES = 0.2
"""How much others may use of the machine while something is measured."""

_TICK = os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """A module of this package, and how it is called."""

    module: str
    full: tuple[str, ...] = ()
    short: tuple[str, ...] = ()
    named: str = ""
    """Where a module is called in several ways."""

    @property
    def name(self) -> str:
        """What its figures are called."""
        return self.named or self.module


_FEW_DECISIONS = ("--hosts", "10", "--decisions", "2", "--schedulers", "2")
_FEW_WAIT = ("--hosts", "3", "--waiting", "4", "--ordinary", "1")
_FEW = ("--single", "1", "--many", "2", "--listed", "2", "--warm", "0", "--hosts", "2")

#: programs that print figures; the soak, the stories and hostile requests have commands of their
#: own, and ``placement_vs_original`` needs OpenStack Placement in an environment of its own
BENCHMARKS = (
    Benchmark("cloud", ("--cloud", "embedded"), ("--cloud", "embedded", *_FEW), "cloud_embedded"),
    Benchmark(
        "cloud", ("--cloud", "distributed"), ("--cloud", "distributed", *_FEW), "cloud_distributed"
    ),
    Benchmark("actions", short=("--hosts", "2", "--servers", "1")),
    Benchmark("growth", short=("--short",)),
    Benchmark("scheduler", short=("--hosts", "50", "--times", "1", "--batch", "2")),
    Benchmark("decisions", short=_FEW_DECISIONS),
    Benchmark("decisions", ("--hosts", "10000"), _FEW_DECISIONS, "decisions_10000"),
    Benchmark(
        "regions",
        short=("--regions", "2", "--hosts", "20", "--decisions", "2", "--seconds", "1"),
    ),
    Benchmark("placement", short=("--rounds", "2")),
    Benchmark("history", short=("--rows", "100", "--servers", "1")),
    Benchmark("migrations", short=("--rows", "2000", "--runs", "1")),
    Benchmark("ports", short=("--ports", "8", "--runs", "1")),
    Benchmark("volumes", short=("--hosts", "2", "--volumes", "2")),
    Benchmark("storage", short=("--builds", "2", "--speed", "50", "--fixed", "1")),
    Benchmark("restarts", short=("--between", "0.1", "--speed", "20")),
    Benchmark("uploads", short=("--uploads", "1", "--clients", "1", "--mib", "1")),
    Benchmark("connections", short=("--connections", "3", "--asks", "2")),
    Benchmark("token_check", short=("--requests", "2")),
    Benchmark("guest_metrics", short=("100",)),
    Benchmark("metrics", short=("--hosts", "2", "--servers", "1", "--rounds", "1")),
    Benchmark("dashboard", short=("--runs", "1", "--browsers", "2", "--seconds", "1")),
    Benchmark("waiting", short=(*_FEW_WAIT, "--releases", "1", "--at-once", "1")),
)


def run(one: Benchmark, *, short: bool) -> dict[str, Any]:
    """Run a benchmark; return its figures, and how they came about."""
    arguments = one.short if short else one.full
    began, busy, mine = time.monotonic(), _busy_seconds(), _own_seconds()
    ended = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{one.module}", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - began
    others = (_busy_seconds() - busy) - (_own_seconds() - mine)
    found: dict[str, Any] = {
        "command": " ".join(("python -m", f"benchmarks.{one.module}", *arguments)),
        "seconds": round(seconds, 1),
        "cores_of_others": round(max(0.0, others) / seconds, 2),
        "exit_code": ended.returncode,
    }
    try:
        return found | {"figures": json.loads(ended.stdout)}
    except ValueError:
        return found | {"error": ended.stderr[-2000:] or ended.stdout[-2000:]}


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    cpu = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s*([0-9]+)", Path("/proc/meminfo").read_text())
    return {
        "cpu": cpu[1] if cpu else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(int(memory[1]) / 2**20, 1) if memory else None,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load": os.getloadavg(),
    }


def _busy_seconds() -> float:
    """Return the CPU seconds of all processes since the start of the machine."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / _TICK


def _own_seconds() -> float:
    """Return those of this process, and of its children that ended, with their children."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def chosen(names: Sequence[str]) -> list[Benchmark]:
    """Return the benchmarks of these names; all without names. Raises ValueError for another."""
    known = {one.name: one for one in BENCHMARKS}
    unknown = set(names) - known.keys()
    if unknown:
        raise ValueError(f"there is no benchmark {', '.join(sorted(unknown))}")
    return [known[name] for name in names] or list(BENCHMARKS)


def table(found: dict[str, Any]) -> str:
    """Return a line for each benchmark: how long it took, and who else used the machine."""
    lines = [f"{'benchmark':20} {'seconds':>8} {'others':>7}  exit"]
    for name, one in found["benchmarks"].items():
        mark = "" if one["cores_of_others"] < QUIET_CORES else "  not quiet"
        lines.append(
            f"{name:20} {one['seconds']:8} {one['cores_of_others']:7}  {one['exit_code']}{mark}"
        )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print JSON or a table; 1 where a benchmark failed or passed a bound."""
    parser = argparse.ArgumentParser(prog="benchmarks.all", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="benchmarks; all without names")
    parser.add_argument("--json", action="store_true", help="print all figures")
    parser.add_argument("--short", action="store_true", help="as briefly as it can be")
    given = parser.parse_args(arguments)
    try:
        benchmarks = chosen(given.names)
    except ValueError as error:
        parser.error(str(error))
    found: dict[str, Any] = {"machine": machine(), "benchmarks": {}}
    for one in benchmarks:
        sys.stderr.write(f"{one.name} …\n")
        found["benchmarks"][one.name] = run(one, short=given.short)
    print(json.dumps(found, indent=2) if given.json else table(found))
    return int(any(one["exit_code"] for one in found["benchmarks"].values()))


if __name__ == "__main__":
    sys.exit(main())
