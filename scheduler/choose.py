"""The decision itself: filter, weigh, sort. Pure: same input, same answer, no I/O."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from common.messages.scheduling import Requested
from scheduler.hosts import Host

Filter = Callable[[Host, Requested], str | None]
Weigher = Callable[[Host, Requested], float]
Filters = Mapping[str, Filter]
Weighers = Mapping[str, tuple[Weigher, float]]


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
    """The best of those that passed, as many as were asked for."""
    refused: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    passed: int = 0


def choose(
    hosts: Iterable[Host],
    request: Requested,
    filters: Filters,
    weighers: Weighers,
    keep: int | None = None,
) -> Choice:
    """Rank the hosts for a request; the best ``keep`` of them are told (None: all).

    ``filters`` run in order; the first to refuse a host gives its reason. Each weigher's raw
    scores are normalised to 0…1 over the hosts that passed and multiplied. Equal totals are told
    apart by a hash of server and host: the same for the same request, but equal hosts share the
    load of many requests.
    """
    return Standing(hosts, request, filters, weighers).choice(request, keep)


class Standing:
    """How hosts stand to a kind of request; one of them may change without a look at the others.

    Requests of one kind differ in their server only.
    """

    def __init__(
        self, hosts: Iterable[Host], request: Requested, filters: Filters, weighers: Weighers
    ) -> None:
        self._request = request
        self._filters = filters
        self._weighers = {name: pair for name, pair in weighers.items() if pair[1]}
        self._hosts: dict[str, Host] = {}
        self._raw: dict[str, tuple[float, ...]] = {}
        self._own: dict[str, tuple[float, ...]] = {}
        self._refused: dict[str, dict[str, str]] = {name: {} for name in filters}
        for host in hosts:
            self.put(host)

    @property
    def hosts(self) -> list[Host]:
        """All of them, as they are now."""
        return list(self._hosts.values())

    def put(self, host: Host) -> None:
        """Take a host in, or take over what it is now."""
        if host.name in self._hosts:
            self._raw.pop(host.name, None)
            self._own.pop(host.name, None)
            for reasons in self._refused.values():
                reasons.pop(host.name, None)
        self._hosts[host.name] = host
        for name, accept in self._filters.items():
            reason = accept(host, self._request)
            if reason is not None:
                self._refused[name][host.name] = reason
                return
        self._raw[host.name] = tuple(
            weigh(host, self._request) for weigh, _ in self._weighers.values()
        )
        own = host.memberships.multipliers
        if own:
            self._own[host.name] = tuple(
                own.get(name, multiplier) for name, (_, multiplier) in self._weighers.items()
            )

    def choice(self, request: Requested, keep: int | None = None) -> Choice:
        """The choice for a request of this kind; see ``choose``."""
        refused = {name: dict(hosts) for name, hosts in self._refused.items() if hosts}
        return Choice(tuple(self._ranked(request, keep)), refused, len(self._raw))

    def _ranked(self, request: Requested, keep: int | None) -> list[Weighed]:
        names = list(self._raw)
        columns = [self._column(index) for index in range(len(self._weighers))]
        uneven = [column for column in columns if column is not None]
        totals = [sum(scores) for scores in zip(*uneven, strict=True)] or [0.0] * len(names)
        best = sorted(
            _at_least(totals, keep),
            key=lambda index: (-totals[index], _tie(names[index], request)),
        )
        return [
            Weighed(
                self._hosts[names[index]],
                totals[index],
                {
                    name: 0.0 if column is None else round(column[index], 4)
                    for name, column in zip(self._weighers, columns, strict=True)
                },
            )
            for index in best[:keep]
        ]

    def _column(self, index: int) -> list[float] | None:
        """What one weigher gives to each host that passed; None: nothing to any."""
        column = _normalised([raw[index] for raw in self._raw.values()])
        if column is None:
            return None
        multiplier = list(self._weighers.values())[index][1]
        if not self._own:
            return [value * multiplier for value in column]
        none = (multiplier,) * (index + 1)
        return [
            value * self._own.get(name, none)[index]
            for name, value in zip(self._raw, column, strict=True)
        ]


def _normalised(raw: Sequence[float]) -> list[float] | None:
    """The raw scores as 0 to 1; None where all are the same: they are 0."""
    low, high = min(raw, default=0.0), max(raw, default=0.0)
    if high == low:
        return None
    span = high - low
    return [(value - low) / span for value in raw]


def _at_least(totals: Sequence[float], keep: int | None) -> Iterable[int]:
    """The positions of the best ``keep``, and of all that equal the last of them."""
    if keep is None or keep >= len(totals):
        return range(len(totals))
    least = heapq.nlargest(keep, totals)[-1]
    return (index for index, total in enumerate(totals) if total >= least)


def _tie(host: str, request: Requested) -> bytes:
    text = f"{request.server_uuid}/{host}".encode()
    return hashlib.blake2b(text, digest_size=8).digest()
