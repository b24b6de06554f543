"""Filters and weighers that evaluate all hosts at once.

Each is still a plain function of one host, which gives the reason and is called where one host
changed. A filter may also give its reasons by group, so that the function is called once for all
hosts of a group. A test compares all forms with each other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from common.messages.scheduling import RequestSpec
from scheduler.columnar.reasons import Codes, Group, joined, split
from scheduler.hosts.columns import HostColumns, Mask
from scheduler.hosts.host import Host
from scheduler.hosts.host_states import Fact, Floats
from scheduler.hosts.usage import Rows

Accept = Callable[[Host, RequestSpec], str | None]
Weigh = Callable[[Host, RequestSpec], float]
W = TypeVar("W", bound=Weigh)
Refused = Callable[[HostColumns, RequestSpec], Mask | None]
#: the reasons of these refused hosts, by group; of the first so many groups only
ByGroup = Callable[[HostColumns, RequestSpec, Rows, int | None], Iterable[Group]]
#: the columns that decide the reason: hosts that are equal in all of them have the same one
SameReason = Callable[[HostColumns, RequestSpec], Iterable[Codes]]
Weighed = Callable[[HostColumns, RequestSpec], Floats | None]


class ColumnarFilter:
    """A filter ``(host, request) → reason | None`` that evaluates all hosts at once.

    ``refused`` returns which hosts it refuses, None when it applies to none. ``by_group`` returns
    the reasons by group; None: the function is called for each host.
    """

    def __init__(self, accept: Accept, refused: Refused, by_group: ByGroup | None = None) -> None:
        functools.update_wrapper(self, accept)
        self._accept, self.refused, self.by_group = accept, refused, by_group

    def __call__(self, host: Host, request: RequestSpec) -> str | None:
        return self._accept(host, request)


class ColumnarWeigher:
    """A weigher ``(host, request) → float``; ``weighed`` weighs all hosts, None: all alike."""

    def __init__(self, weigh: Weigh, weighed: Weighed) -> None:
        functools.update_wrapper(self, weigh)
        self._weigh, self.weighed = weigh, weighed
        self.absolute = False

    def __call__(self, host: Host, request: RequestSpec) -> float:
        return self._weigh(host, request)


class TogetherWeigher(ColumnarWeigher):
    """A weigher whose score of a host depends on the others: all are weighed when one changes."""

    def __init__(
        self, weighed: Callable[[HostColumns, RequestSpec], Floats], counting: Sequence[str] = ()
    ) -> None:
        """``counting``: the resource classes whose usage it needs of all hosts, as ``others``."""

        def alone(host: Host, request: RequestSpec) -> float:
            return float(weighed(HostColumns.of([host]), request)[0])

        super().__init__(alone, weighed)
        functools.update_wrapper(self, weighed)
        self.counting = tuple(counting)


def absolute(weigher: W) -> W:
    """Mark a weigher whose scores are -1…1 already: they are not normalised."""
    vars(weigher)["absolute"] = True
    return weigher


def weighing_together(
    weighed: Callable[[HostColumns, RequestSpec], Floats], counting: Sequence[str] = ()
) -> TogetherWeigher:
    """Return a weigher that only weighs all hosts together."""
    return TogetherWeigher(weighed, counting)


def counted_together(weighers: Iterable[Weigh]) -> frozenset[str]:
    """Return the resource classes whose usage weighers need of all hosts."""
    return frozenset(
        name for weigh in weighers if isinstance(weigh, TogetherWeigher) for name in weigh.counting
    )


def refusing(
    refused: Refused, *, same_reason: SameReason | None = None, by_group: ByGroup | None = None
) -> Callable[[Accept], ColumnarFilter]:
    """Return a decorator that gives a filter a form for all hosts, and its reasons by group."""

    def made(accept: Accept) -> ColumnarFilter:
        return ColumnarFilter(
            accept, refused, _by_group(accept, same_reason) if same_reason else by_group
        )

    return made


def _by_group(accept: Accept, same_reason: SameReason) -> ByGroup:
    """Return reasons by group: that of the first host of each."""

    def by_group(
        columns: HostColumns, request: RequestSpec, positions: Rows, most: int | None
    ) -> Iterator[Group]:
        def reason(position: int) -> tuple[str, ...]:
            return (accept(columns.host(position), request) or "",)

        codes = joined(
            (column[positions] for column in same_reason(columns, request)), len(positions)
        )
        for among in split(codes, most):
            mine = positions[among]
            yield Group(mine, functools.partial(reason, int(mine[0])))

    return by_group


def for_all_hosts(columns: HostColumns, request: RequestSpec) -> Iterable[Codes]:
    """Return that the reason is the same for every host."""
    return ()


def by_facts(*facts: Fact[Any]) -> SameReason:
    """Return that these facts decide the reason."""
    return lambda columns, request: [columns.codes(fact) for fact in facts]


def weighing(weighed: Weighed) -> Callable[[Weigh], ColumnarWeigher]:
    """Return a decorator that gives a weigher a form for all hosts."""
    return lambda weigh: ColumnarWeigher(weigh, weighed)


def host_fact(
    fact: Fact[Any],
) -> Callable[[Callable[[Any, RequestSpec], str | None]], ColumnarFilter]:
    """Return a decorator of a filter of one fact: ``(fact, request) → reason | None``."""

    def made(reason: Callable[[Any, RequestSpec], str | None]) -> ColumnarFilter:
        @functools.wraps(reason)
        def accept(host: Host, request: RequestSpec) -> str | None:
            return reason(fact(host), request)

        def refused(columns: HostColumns, request: RequestSpec) -> Mask:
            return columns.where(fact, lambda value: reason(value, request) is not None)

        return refusing(refused, same_reason=by_facts(fact))(accept)

    return made
