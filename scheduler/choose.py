"""The decision itself: filter, weigh, sort. Pure: same input, same answer, no I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from common.messages import Requested
from scheduler.hosts import Host

Filter = Callable[[Host, Requested], str | None]
Weigher = Callable[[Host, Requested], float]


@dataclass(frozen=True)
class Weighed:
    """A host that passed, with its total and what each weigher gave (after the multiplier)."""

    host: Host
    total: float
    scores: Mapping[str, float]


@dataclass(frozen=True)
class Choice:
    """Hosts best first, and for each filter, in their order, the hosts it refused and why."""

    ranked: tuple[Weighed, ...]
    refused: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def choose(
    hosts: Iterable[Host],
    request: Requested,
    filters: Mapping[str, Filter],
    weighers: Mapping[str, tuple[Weigher, float]],
) -> Choice:
    """Rank the hosts for a request.

    ``filters`` run in order; the first to refuse a host gives its reason. Each weigher's raw
    scores are normalised to 0…1 over the hosts that passed and multiplied. Equal totals are told
    apart by a hash of server and host: the same for the same request, but equal hosts share the
    load of many requests.
    """
    passed: list[Host] = []
    refused: dict[str, dict[str, str]] = {name: {} for name in filters}
    for host in hosts:
        for name, accept in filters.items():
            reason = accept(host, request)
            if reason is not None:
                refused[name][host.name] = reason
                break
        else:
            passed.append(host)
    told = {name: reasons for name, reasons in refused.items() if reasons}
    return Choice(_rank(passed, request, weighers), told)


def _rank(
    hosts: Sequence[Host], request: Requested, weighers: Mapping[str, tuple[Weigher, float]]
) -> tuple[Weighed, ...]:
    columns = {
        name: [
            multiplier * score for score in _normalise([weigh(host, request) for host in hosts])
        ]
        for name, (weigh, multiplier) in weighers.items()
        if multiplier
    }
    weighed = [
        Weighed(
            host,
            sum(column[index] for column in columns.values()),
            {name: round(column[index], 4) for name, column in columns.items()},
        )
        for index, host in enumerate(hosts)
    ]
    return tuple(sorted(weighed, key=lambda item: (-item.total, _tie(item.host, request))))


def _normalise(raw: Sequence[float]) -> list[float]:
    if not raw:
        return []
    low, high = min(raw), max(raw)
    if high == low:
        return [0.0] * len(raw)
    return [(value - low) / (high - low) for value in raw]


def _tie(host: Host, request: Requested) -> bytes:
    text = f"{request.server_uuid}/{host.name}".encode()
    return hashlib.blake2b(text, digest_size=8).digest()
