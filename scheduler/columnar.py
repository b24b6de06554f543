"""Filters and weighers that are asked about all hosts at once.

Each is still a plain function of one host: that says the reason, and serves where one host
changed. A test holds both forms against each other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from common.messages.scheduling import Requested
from scheduler.fleet import Fleet, Mask
from scheduler.hosts import Host
from scheduler.known import Fact, Floats

Accept = Callable[[Host, Requested], str | None]
Weigh = Callable[[Host, Requested], float]
W = TypeVar("W", bound=Weigh)
Refused = Callable[[Fleet, Requested], Mask | None]
Weighed = Callable[[Fleet, Requested], Floats | None]


class ColumnarFilter:
    """A filter ``(host, request) → reason | None``; ``refused`` says which hosts of a fleet it
    refuses, None: none of them, whatever they are."""

    def __init__(self, accept: Accept, refused: Refused) -> None:
        functools.update_wrapper(self, accept)
        self._accept, self.refused = accept, refused

    def __call__(self, host: Host, request: Requested) -> str | None:
        return self._accept(host, request)


class ColumnarWeigher:
    """A weigher ``(host, request) → float``; ``weighed`` weighs a fleet, None: all alike."""

    def __init__(self, weigh: Weigh, weighed: Weighed) -> None:
        functools.update_wrapper(self, weigh)
        self._weigh, self.weighed = weigh, weighed
        self.absolute = False

    def __call__(self, host: Host, request: Requested) -> float:
        return self._weigh(host, request)


class TogetherWeigher(ColumnarWeigher):
    """A weigher of whole fleets: what a host gets depends on the others. Where one host changed,
    all are weighed anew."""

    def __init__(
        self, weighed: Callable[[Fleet, Requested], Floats], counting: Sequence[str] = ()
    ) -> None:
        """``counting``: the resource classes of which it needs the numbers of all hosts, as the
        fleet's ``others``."""

        def alone(host: Host, request: Requested) -> float:
            return float(weighed(Fleet.of([host]), request)[0])

        super().__init__(alone, weighed)
        functools.update_wrapper(self, weighed)
        self.counting = tuple(counting)


def absolute(weigher: W) -> W:
    """A weigher whose numbers are shares already, -1…1: they count as they are, however much or
    little hosts differ in them."""
    vars(weigher)["absolute"] = True
    return weigher


def weighing_together(
    weighed: Callable[[Fleet, Requested], Floats], counting: Sequence[str] = ()
) -> TogetherWeigher:
    """A weigher that has no other form."""
    return TogetherWeigher(weighed, counting)


def counted_together(weighers: Iterable[Weigh]) -> frozenset[str]:
    """The resource classes of which weighers need the numbers of all hosts."""
    return frozenset(
        name for weigh in weighers if isinstance(weigh, TogetherWeigher) for name in weigh.counting
    )


def refusing(refused: Refused) -> Callable[[Accept], ColumnarFilter]:
    """A filter with this second form."""
    return lambda accept: ColumnarFilter(accept, refused)


def weighing(weighed: Weighed) -> Callable[[Weigh], ColumnarWeigher]:
    """A weigher with this second form."""
    return lambda weigh: ColumnarWeigher(weigh, weighed)


def by(fact: Fact[Any]) -> Callable[[Callable[[Any, Requested], str | None]], ColumnarFilter]:
    """A filter that looks at one fact only, written as ``(fact, request) → reason | None``."""

    def made(reason: Callable[[Any, Requested], str | None]) -> ColumnarFilter:
        @functools.wraps(reason)
        def accept(host: Host, request: Requested) -> str | None:
            return reason(fact(host), request)

        def refused(fleet: Fleet, request: Requested) -> Mask:
            return fleet.where(fact, lambda value: reason(value, request) is not None)

        return ColumnarFilter(accept, refused)

    return made
