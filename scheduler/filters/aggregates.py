"""Filters by the metadata of a host's aggregates: flavors, images, projects."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from common.guest.spec_operators import compiled
from common.messages.scheduling import RequestSpec
from scheduler.columnar.forms import host_fact, refusing
from scheduler.columnar.reasons import Codes
from scheduler.filters import host_filter
from scheduler.hosts.columns import HostColumns, Mask
from scheduler.hosts.host import Host
from scheduler.hosts.memberships import Memberships, memberships_of

SCOPE = "aggregate_instance_extra_specs:"


def _asked(request: RequestSpec) -> Iterator[tuple[str, str]]:
    """Yield keys of metadata, and what the flavor requires of them."""
    for key, wanted in request.extra_specs.items():
        if key.startswith(SCOPE):
            yield key.removeprefix(SCOPE), wanted


def _otherwise(columns: HostColumns, request: RequestSpec) -> Mask | None:
    refused = None
    for name, wanted in _asked(request):
        unfit = ~columns.where(memberships_of, _saying(name, wanted))
        refused = unfit if refused is None else refused | unfit
    return refused


def _saying(name: str, wanted: str) -> Callable[[Memberships], bool]:
    # There are many combinations of aggregates, but few values of one key.
    matches = functools.lru_cache(maxsize=None)(_matching(wanted))
    return lambda memberships: matches(memberships.values_of(name))


def _matching(wanted: str) -> Callable[[frozenset[str]], bool]:
    matches = compiled(wanted)
    return lambda there: any(map(matches, there))


def _same_values(columns: HostColumns, request: RequestSpec) -> Iterable[Codes]:
    for name, _ in _asked(request):
        yield columns.each(memberships_of, _numbered(name)).astype(np.int64)


def _numbered(name: str) -> Callable[[Memberships], int]:
    numbers: dict[frozenset[str], int] = {}
    return lambda memberships: numbers.setdefault(memberships.values_of(name), len(numbers))


@host_filter(
    after="aggregate_multitenancy_isolation",
    words="aggregates that don't offer what the flavor asks",
)
@refusing(_otherwise, same_reason=_same_values)
def aggregate_instance_extra_specs(host: Host, request: RequestSpec) -> str | None:
    """Refuse hosts whose aggregates' metadata doesn't match the flavor's extra specs.

    Only those that begin with `aggregate_instance_extra_specs:`; a value may begin with one of
    Nova's operators (`>= 5`, `<or> a <or> b`, `<in> x` …).
    """
    for name, wanted in _asked(request):
        there = host.memberships.values_of(name)
        if not _matching(wanted)(there):
            shown = ", ".join(sorted(there)) or "nothing"
            return f"its aggregates say {shown} of {name}, the flavor asks {wanted}"
    return None


def _image_properties(host: Host) -> frozenset[tuple[str, frozenset[str]]]:
    return frozenset(host.memberships.image_properties.items())


@host_filter(
    after="aggregate_instance_extra_specs", words="an aggregate that doesn't take such images"
)
@host_fact(_image_properties)
def aggregate_image_properties_isolation(
    kept: frozenset[tuple[str, frozenset[str]]], request: RequestSpec
) -> str | None:
    """Refuse hosts whose aggregates require another value of an image's property."""
    for name, there in sorted(kept):
        wanted = request.image_properties.get(name)
        if wanted and wanted not in there:
            shown = ", ".join(sorted(there))
            return f"its aggregates take images with {name} {shown}, this one has {wanted}"
    return None


def _projects(host: Host) -> frozenset[str]:
    return host.memberships.projects


@host_filter(after="availability_zone", words="an aggregate kept for other projects")
@host_fact(_projects)
def aggregate_multitenancy_isolation(projects: frozenset[str], request: RequestSpec) -> str | None:
    """Refuse hosts that aggregates reserve for other projects (`filter_tenant_id…`)."""
    if not projects or request.project_id in projects:
        return None
    return "kept for other projects by an aggregate"
