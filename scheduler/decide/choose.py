"""Choose hosts: filter, weigh, sort. Pure: same input, same answer, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from common.messages.scheduling import RequestSpec
from scheduler.columnar.forms import ColumnarFilter, ColumnarWeigher, TogetherWeigher
from scheduler.decide.refusals import Refusals
from scheduler.hosts import memberships
from scheduler.hosts.columns import HostColumns, Mask
from scheduler.hosts.host import Host
from scheduler.hosts.host_states import Floats, tie_hash
from scheduler.hosts.usage import NO_ROWS, Rows

Filter = Callable[[Host, RequestSpec], str | None]
Weigher = Callable[[Host, RequestSpec], float]
Filters = Mapping[str, Filter]
Weighers = Mapping[str, tuple[Weigher, float]]

#: in the column of filters that refused a host: none
_PASSED = -1


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
    """The best hosts that passed, up to the number asked for."""
    refused: Mapping[str, Refusals] = field(default_factory=dict)
    positions: Rows = field(default_factory=lambda: NO_ROWS, compare=False)
    """The hosts that passed."""

    @property
    def passed(self) -> int:
        """How many hosts passed."""
        return len(self.positions)


def choose(
    hosts: HostColumns | Iterable[Host],
    request: RequestSpec,
    filters: Filters,
    weighers: Weighers,
    keep: int | None = None,
) -> Choice:
    """Rank the hosts for a request and return the best ``keep`` of them (None: all).

    ``filters`` run in order; the first to refuse a host gives its reason. Each weigher's raw
    scores are normalised to 0…1 over the hosts that passed, unless they are ``absolute``, and
    multiplied. A score that is no number counts as the least of the others. Ties are broken by a
    hash of server and host: stable for a request, but many requests spread over equal hosts.
    """
    return Evaluation(HostColumns.of(hosts), request, filters, weighers).choice(request, keep)


class Evaluation:
    """Filters and weighers evaluated for a kind of request; updated when one host changes.

    Requests of one kind differ in their server only.
    """

    def __init__(
        self, columns: HostColumns, request: RequestSpec, filters: Filters, weighers: Weighers
    ) -> None:
        self.columns = columns
        self._request = request
        self._filters = filters
        self._reasons: dict[int, str] = {}
        self._refused_by = self._filter()
        self._weighers = [
            (name, weigh, multipliers)
            for name, (weigh, multiplier) in weighers.items()
            if (multipliers := _multipliers(columns, name, multiplier)) is not None
        ]
        self._raw = [self._weigh(weigh) for _, weigh, _ in self._weighers]

    def _filter(self) -> NDArray[np.int16]:
        """Return the number of the filter that refuses each host."""
        refused_by = np.full(len(self.columns), _PASSED, np.int16)
        for number, accept in enumerate(self._filters.values()):
            refused = self._refuses(accept, refused_by == _PASSED)
            if refused is not None:
                refused_by[refused & (refused_by == _PASSED)] = number
        return refused_by

    def _refuses(self, accept: Filter, asked: Mask) -> Mask | None:
        if isinstance(accept, ColumnarFilter):
            return accept.refused(self.columns, self._request)
        refused = np.zeros(len(self.columns), np.bool_)
        for position in np.flatnonzero(asked).tolist():
            reason = accept(self.columns.host(position), self._request)
            if reason is not None:
                refused[position] = True
                self._reasons[position] = reason
        return refused

    def _weigh(self, weigh: Weigher) -> Floats | None:
        """Return the raw scores; None when all hosts are alike."""
        if isinstance(weigh, ColumnarWeigher):
            return weigh.weighed(self.columns, self._request)
        raw = np.zeros(len(self.columns))
        for position in np.flatnonzero(self._refused_by == _PASSED).tolist():
            raw[position] = weigh(self.columns.host(position), self._request)
        return raw

    def changed(self, position: int) -> None:
        """Evaluate a host again that has changed."""
        host = self.columns.host(position)
        self._weigh_together()
        self._refused_by[position] = _PASSED
        self._reasons.pop(position, None)
        for number, accept in enumerate(self._filters.values()):
            reason = accept(host, self._request)
            if reason is not None:
                self._refused_by[position], self._reasons[position] = number, reason
                return
        for raw, (_, weigh, _) in zip(self._raw, self._weighers, strict=True):
            if raw is not None and not isinstance(weigh, TogetherWeigher):
                raw[position] = weigh(host, self._request)

    def _weigh_together(self) -> None:
        for index, (_, weigh, _) in enumerate(self._weighers):
            if isinstance(weigh, TogetherWeigher):
                self._raw[index] = weigh.weighed(self.columns, self._request)

    @property
    def passed(self) -> Rows:
        """The hosts that no filter refuses."""
        return np.flatnonzero(self._refused_by == _PASSED)

    def choice(self, request: RequestSpec, keep: int | None = None) -> Choice:
        """Return the choice for a request of this kind; see ``choose``."""
        passed = self.passed
        refused = self._refused() if len(passed) < len(self.columns) else {}
        return Choice(tuple(self._ranked(passed, request, keep)), refused, passed)

    def _refused(self) -> dict[str, Refusals]:
        counts = np.bincount(self._refused_by + 1, minlength=len(self._filters) + 1)[1:].tolist()
        return {
            name: Refusals(
                self.columns,
                np.flatnonzero(self._refused_by == number),
                accept,
                self._request,
                self._reasons,
            )
            for number, (name, accept) in enumerate(self._filters.items())
            if counts[number]
        }

    def _ranked(self, passed: Rows, request: RequestSpec, keep: int | None) -> list[Weighed]:
        columns = [self._column(index, passed) for index in range(len(self._weighers))]
        uneven = [column for column in columns if column is not None]
        totals = sum(uneven[1:], uneven[0]) if uneven else np.zeros(len(passed))
        return [
            Weighed(
                self.columns.host(int(passed[index])),
                float(totals[index]),
                {
                    name: 0.0 if column is None else round(float(column[index]), 4)
                    for (name, _, _), column in zip(self._weighers, columns, strict=True)
                },
            )
            for index in _best(totals, self._ties(passed, request), keep)
        ]

    def _ties(self, passed: Rows, request: RequestSpec) -> Callable[[Rows], NDArray[np.uint64]]:
        """Return a function that breaks ties: hashes of this server with hosts."""
        seed = np.array([tie_hash(request.server_uuid)], np.uint64)
        return lambda among: _mixed(self.columns.tie_hashes[passed[among]] ^ seed)

    def _column(self, index: int, passed: Rows) -> Floats | None:
        """Return what one weigher adds for each host that passed; None when it adds nothing."""
        all_raw = self._raw[index]
        if all_raw is None or not len(passed):
            return None
        _, weigh, multipliers = self._weighers[index]
        raw = _sound(all_raw[passed])
        shares = raw if getattr(weigh, "absolute", False) else _normalised(raw)
        if shares is None:
            return None
        return shares * (multipliers if isinstance(multipliers, float) else multipliers[passed])


#: scores beyond this count as no number
_LARGEST = 1e300


def _sound(raw: Floats) -> Floats:
    """Return the scores with the least of them in place of those that are no number."""
    strange = ~(np.abs(raw) <= _LARGEST)
    if not strange.any():
        return raw
    least = float(raw[~strange].min()) if not strange.all() else 0.0
    return np.where(strange, least, raw)


def _normalised(raw: Floats) -> Floats | None:
    """Return the scores scaled to 0…1; None when all are equal."""
    low, high = raw.min(), raw.max()
    if low == high:
        return None
    shares: Floats = (raw - low) / (high - low)
    return shares


def _multipliers(columns: HostColumns, name: str, multiplier: float) -> float | Floats | None:
    """Return a weigher's multiplier, by host where aggregates set their own; None when it is 0."""
    of = memberships.multipliers
    if not any(name == mine for one in columns.values(of) for mine, _ in one):
        return multiplier or None
    return columns.each(of, lambda one: dict(one).get(name, multiplier))


def _best(
    totals: Floats, ties: Callable[[Rows], NDArray[np.uint64]], keep: int | None
) -> list[int]:
    """Return the positions of the best hosts, best first."""
    if keep == 0:
        return []
    among = np.arange(len(totals))
    if keep is not None and keep < len(totals):
        least = np.partition(totals, len(totals) - keep)[len(totals) - keep]
        among = np.flatnonzero(totals >= least)
    order = np.lexsort((ties(among), -totals[among]))
    found: list[int] = among[order][:keep].tolist()
    return found


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return hashes of numbers (the finaliser of SplitMix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))
