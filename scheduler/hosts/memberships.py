"""Metadata of a host's aggregates, combined; computed once for each set of aggregates."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from common.resources.aggregates import ZONE, AggregateFacts

#: prefix of metadata that reserve an aggregate's hosts for projects
TENANT = "filter_tenant_id"
#: suffix of metadata that set the multiplier of a weigher
MULTIPLIER = "_weight_multiplier"
_LARGEST = 1e9
#: image properties that Nova knows; others are free text of the owner
_IMAGE_PROPERTY = re.compile(r"(hw|os|img)_.+")


@dataclass(frozen=True, eq=False)
class Memberships:
    """The aggregates that hosts are in; each is equal to itself only."""

    aggregates: tuple[AggregateFacts, ...] = ()

    @functools.cached_property
    def zone(self) -> str | None:
        """The availability zone that they make, if any."""
        found = (one.metadata[ZONE] for one in self.aggregates if ZONE in one.metadata)
        return next(found, None)

    @functools.cached_property
    def metadata(self) -> Mapping[str, frozenset[str]]:
        """The metadata of all of them; a value may hold several, with commas."""
        found: dict[str, frozenset[str]] = {}
        for aggregate in self.aggregates:
            for name, text in aggregate.metadata.items():
                parts = frozenset(part.strip() for part in text.split(","))
                found[name] = found.get(name, frozenset()) | parts
        return found

    def values_of(self, name: str) -> frozenset[str]:
        """Return the values of one key."""
        return self.metadata.get(name, frozenset())

    @functools.cached_property
    def projects(self) -> frozenset[str]:
        """The projects that they keep their hosts for; none: for all."""
        kept = (v for name, v in self.metadata.items() if name.startswith(TENANT))
        return frozenset().union(*kept)

    @functools.cached_property
    def image_properties(self) -> Mapping[str, frozenset[str]]:
        """Values that these properties of an image must be among, where the image has them."""
        return {
            name: values
            for name, values in self.metadata.items()
            if _IMAGE_PROPERTY.fullmatch(name)
        }

    @functools.cached_property
    def multipliers(self) -> Mapping[str, float]:
        """Weigher → its multiplier for these hosts; of several the least, as in Nova."""
        found: dict[str, float] = {}
        for name, values in self.metadata.items():
            if name.endswith(MULTIPLIER):
                numbers = [found for found in map(number, values) if found is not None]
                if numbers:
                    found[name.removesuffix(MULTIPLIER)] = min(numbers)
        return found


def number(text: str) -> float | None:
    """Return a multiplier; None for a text that is none, is not finite, or is too large to sum."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if abs(found) <= _LARGEST else None


NONE = Memberships()


class _Member(Protocol):
    @property
    def memberships(self) -> Memberships: ...


def memberships_of(host: _Member) -> Memberships:
    """Return a host's memberships: a fact for filters."""
    return host.memberships


def multipliers(host: _Member) -> frozenset[tuple[str, float]]:
    """Return a host's multipliers: a fact with few values, however aggregates combine."""
    return frozenset(host.memberships.multipliers.items())


def by_host(aggregates: Iterable[AggregateFacts]) -> dict[str, Memberships]:
    """Return the memberships of each host in an aggregate; equal ones are the same object."""
    of_host: dict[str, list[AggregateFacts]] = {}
    for aggregate in aggregates:
        for host in aggregate.hosts:
            of_host.setdefault(host, []).append(aggregate)
    shared: dict[tuple[str, ...], Memberships] = {}
    return {
        host: shared.setdefault(tuple(one.uuid for one in mine), Memberships(tuple(mine)))
        for host, mine in of_host.items()
    }
