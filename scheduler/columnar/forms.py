"""Filters and weighers that are asked about all hosts at once.

Each is still a plain function of one host: that says the reason, and serves where one host
changed. Why thousands are refused a filter can tell by group too, so that the function is asked
once for all that are alike. A test holds all forms against each other.
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
#: why these are refused, by group; of the first so many different sentences only
ByGroup = Callable[[HostColumns, RequestSpec, Rows, int | None], Iterable[Group]]
#: the columns that decide the sentence: to hosts that are equal in all of them the same is said
Alike = Callable[[HostColumns, RequestSpec], Iterable[Codes]]
Weighed = Callable[[HostColumns, RequestSpec], Floats | None]


class ColumnarFilter:
    """A filter ``(host, request) → reason | None``; ``refused`` says which hosts of a fleet it
    refuses, None: none of them, whatever they are. ``by_group`` says why, by group; None: only the
    function itself can say it."""

    def __init__(self, accept: Accept, refused: Refused, by_group: ByGroup | None = None) -> None:
        functools.update_wrapper(self, accept)
        self._accept, self.refused, self.by_group = accept, refused, by_group

    def __call__(self, host: Host, request: RequestSpec) -> str | None:
        return self._accept(host, request)


class ColumnarWeigher:
    """A weigher ``(host, request) → float``; ``weighed`` weighs a fleet, None: all alike."""

    def __init__(self, weigh: Weigh, weighed: Weighed) -> None:
        functools.update_wrapper(self, weigh)
        self._weigh, self.weighed = weigh, weighed
        self.absolute = False

    def __call__(self, host: Host, request: RequestSpec) -> float:
        return self._weigh(host, request)


class TogetherWeigher(ColumnarWeigher):
    """A weigher of whole fleets: what a host gets depends on the others. Where one host changed,
    all are weighed anew."""

    def __init__(
        self, weighed: Callable[[HostColumns, RequestSpec], Floats], counting: Sequence[str] = ()
    ) -> None:
        """``counting``: the resource classes of which it needs the numbers of all hosts, as the
        fleet's ``others``."""

        def alone(host: Host, request: RequestSpec) -> float:
            return float(weighed(HostColumns.of([host]), request)[0])

        super().__init__(alone, weighed)
        functools.update_wrapper(self, weighed)
        self.counting = tuple(counting)


def absolute(weigher: W) -> W:
    """A weigher whose numbers are shares already, -1…1: they count as they are, however much or
    little hosts differ in them."""
    vars(weigher)["absolute"] = True
    return weigher


def weighing_together(
    weighed: Callable[[HostColumns, RequestSpec], Floats], counting: Sequence[str] = ()
) -> TogetherWeigher:
    """A weigher that has no other form."""
    return TogetherWeigher(weighed, counting)


def counted_together(weighers: Iterable[Weigh]) -> frozenset[str]:
    """The resource classes of which weighers need the numbers of all hosts."""
    return frozenset(
        name for weigh in weighers if isinstance(weigh, TogetherWeigher) for name in weigh.counting
    )


def refusing(
    refused: Refused, *, alike: Alike | None = None, by_group: ByGroup | None = None
) -> Callable[[Accept], ColumnarFilter]:
    """A filter with this second form, and one of those that tell the reasons by group."""

    def made(accept: Accept) -> ColumnarFilter:
        return ColumnarFilter(accept, refused, _asking(accept, alike) if alike else by_group)

    return made


def _asking(accept: Accept, alike: Alike) -> ByGroup:
    """The sentence of a group is what the function says of its first host."""

    def by_group(
        columns: HostColumns, request: RequestSpec, positions: Rows, most: int | None
    ) -> Iterator[Group]:
        def said(position: int) -> tuple[str, ...]:
            return (accept(columns.host(position), request) or "",)

        codes = joined((column[positions] for column in alike(columns, request)), len(positions))
        for among in split(codes, most):
            mine = positions[among]
            yield Group(mine, functools.partial(said, int(mine[0])))

    return by_group


def all_alike(columns: HostColumns, request: RequestSpec) -> Iterable[Codes]:
    """The same is said to every host."""
    return ()


def alike_in(*facts: Fact[Any]) -> Alike:
    """These facts decide the sentence."""
    return lambda columns, request: [columns.codes(fact) for fact in facts]


def weighing(weighed: Weighed) -> Callable[[Weigh], ColumnarWeigher]:
    """A weigher with this second form."""
    return lambda weigh: ColumnarWeigher(weigh, weighed)


def by(fact: Fact[Any]) -> Callable[[Callable[[Any, RequestSpec], str | None]], ColumnarFilter]:
    """A filter that looks at one fact only, written as ``(fact, request) → reason | None``."""

    def made(reason: Callable[[Any, RequestSpec], str | None]) -> ColumnarFilter:
        @functools.wraps(reason)
        def accept(host: Host, request: RequestSpec) -> str | None:
            return reason(fact(host), request)

        def refused(columns: HostColumns, request: RequestSpec) -> Mask:
            return columns.where(fact, lambda value: reason(value, request) is not None)

        return refusing(refused, alike=alike_in(fact))(accept)

    return made
