"""A guest's processors and memory: sockets, cores, NUMA nodes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from common.guest.asked import Asked, CannotError

#: no hypervisor here gives a guest more
MAX_NUMA_NODES = 8
_RANGE = re.compile(r"(\^?)([0-9]+)(?:-([0-9]+))?")


@dataclass(frozen=True)
class NumaNode:
    """One NUMA node of the guest, wherever on the host it is."""

    cpus: tuple[int, ...]
    memory_mib: int


def sockets_and_cores(vcpus: int, asked: Asked) -> tuple[int, int]:
    """Return (sockets, cores of each): the preferred ones, within the maximum.

    One socket by default. Raises CannotError if the numbers don't make the VCPUs.
    """
    sockets = asked.number("hw:cpu_sockets", "hw_cpu_sockets")
    cores = asked.number("hw:cpu_cores", "hw_cpu_cores")
    if (asked.number("hw:cpu_threads", "hw_cpu_threads") or 1) > 1:
        raise CannotError("hw:cpu_threads: guests have one thread a core")
    most_sockets = asked.number("hw:cpu_max_sockets", "hw_cpu_max_sockets") or vcpus
    most_cores = asked.number("hw:cpu_max_cores", "hw_cpu_max_cores") or vcpus
    fitting = [
        (number, vcpus // number)
        for number in range(1, vcpus + 1)
        if not vcpus % number
        and number <= most_sockets
        and vcpus // number <= most_cores
        and sockets in (None, number)
        and cores in (None, vcpus // number)
    ]
    if not fitting:
        raise CannotError(
            f"{vcpus} VCPUs can't be {sockets or 'any'} sockets (at most {most_sockets}) "
            f"of {cores or 'any'} cores (at most {most_cores})"
        )
    return fitting[0]


def numa_nodes(vcpus: int, memory_mib: int, asked: Asked) -> tuple[NumaNode, ...]:
    """Return the guest's NUMA nodes; none: it has no topology. Raises CannotError."""
    count = asked.number("hw:numa_nodes", "hw_numa_nodes")
    if count is None:
        return ()
    if count > min(MAX_NUMA_NODES, vcpus):
        most = min(MAX_NUMA_NODES, vcpus)
        raise CannotError(f"{count} NUMA nodes can't be had, at most {most} with {vcpus} VCPUs")
    cpus = _cpus(vcpus, count, asked)
    memory = _memory(memory_mib, count, asked)
    return tuple(NumaNode(one, mib) for one, mib in zip(cpus, memory, strict=True))


def _cpus(vcpus: int, count: int, asked: Asked) -> list[tuple[int, ...]]:
    listed = _each("hw:numa_cpus", count, asked)
    if listed is None:
        if vcpus % count:
            raise CannotError(
                f"{vcpus} VCPUs can't be shared evenly by {count} NUMA nodes: say hw:numa_cpus.N"
            )
        each = vcpus // count
        return [tuple(range(number * each, (number + 1) * each)) for number in range(count)]
    found = [parse_cpus(text) for text in listed]
    if sorted(cpu for cpus in found for cpu in cpus) != list(range(vcpus)):
        raise CannotError(f"hw:numa_cpus.N must name each of the {vcpus} VCPUs once")
    return found


def _memory(memory_mib: int, count: int, asked: Asked) -> list[int]:
    listed = _each("hw:numa_mem", count, asked)
    if listed is None:
        if memory_mib % count:
            raise CannotError(
                f"{memory_mib} MiB can't be shared evenly by {count} NUMA nodes: say hw:numa_mem.N"
            )
        return [memory_mib // count] * count
    if not all(text.isascii() and text.isdigit() for text in listed):
        raise CannotError("hw:numa_mem.N must be numbers of MiB")
    found = [int(text) for text in listed]
    if sum(found) != memory_mib:
        raise CannotError(f"hw:numa_mem.N add up to {sum(found)} MiB, the flavor has {memory_mib}")
    return found


def _each(spec: str, count: int, asked: Asked) -> list[str] | None:
    """Return the value of each node; None: none has one."""
    name = spec.replace(":", "_")
    found = [asked.agreed(f"{spec}.{number}", f"{name}.{number}") for number in range(count)]
    if not any(found):
        return None
    if not all(found):
        raise CannotError(f"{spec}.N must be said of all {count} NUMA nodes or of none")
    return found


def parse_cpus(text: str) -> tuple[int, ...]:
    """Return the numbers of a list like ``0-3,^2,6``. Raises CannotError."""
    yes: set[int] = set()
    no: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None or (match[1] and match[3]):
            raise CannotError(f"'{text}' is no list of processors")
        first, last = int(match[2]), int(match[3] or match[2])
        if last - first > 1024:
            raise CannotError(f"'{text}' names too many processors")
        (no if match[1] else yes).update(range(first, last + 1))
    return tuple(sorted(yes - no))


def cpu_list(cpus: Iterable[int], separator: str) -> str:
    """Return numbers as ranges, e.g. ``0-3;6``."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return separator.join(f"{a}-{b}" if a != b else f"{a}" for a, b in ranges)
