"""Counts what runs and waits in this worker, by host, for its heartbeats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from common.messages.queues import Queue, Queues


class Entry(NamedTuple):
    """One operation in a queue."""

    place: str
    """Where it counts: a host, or a node within a driver."""
    waits_seconds: float | None
    """How long it has waited; None: it runs."""


def counted(entries: Iterable[Entry], empty: Queue) -> dict[str, Queue]:
    """Return a queue for each place that has entries; ``empty`` is one without any."""
    found: dict[str, Queue] = {}
    for place, waits in entries:
        queue = found.get(place, empty)
        if waits is None:
            found[place] = replace(queue, running=queue.running + 1)
        else:
            longest = max(round(waits, 1), queue.oldest_waiting_seconds or 0.0)
            found[place] = replace(
                queue, waiting=queue.waiting + 1, oldest_waiting_seconds=longest
            )
    return found


def gathered(
    idle: Queue,
    operations: Mapping[str, Queue],
    storages: Iterable[Mapping[str, tuple[Queue, ...]]],
) -> Queues:
    """Return all queues: those of operations, by host, and those of the clusters' storages.

    ``idle`` is that of operations on a host that has none.
    """
    busy: dict[str, tuple[Queue, ...]] = {host: (queue,) for host, queue in operations.items()}
    for of_hosts in storages:
        for host, found in of_hosts.items():
            busy[host] = (*busy.get(host, (idle,)), *found)
    return Queues((idle,), busy)
