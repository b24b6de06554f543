"""Filters by service: is the host's agent up and enabled, and its node healthy?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from common.messages.scheduling import RequestSpec
from scheduler.columnar.forms import for_all_hosts, host_fact, refusing
from scheduler.columnar.reasons import Group, constant
from scheduler.filters import host_filter
from scheduler.hosts.columns import HostColumns, Mask
from scheduler.hosts.host import Host
from scheduler.hosts.usage import Rows

#: the standard trait that marks a disabled compute service in placement (as Nova sets it)
DISABLED_TRAIT = "COMPUTE_STATUS_DISABLED"

#: a host whose agent was silent for longer is down; agents report every 10 s
DOWN_SECONDS = 60.0

_FORCED = "forced down by an administrator"
_NEVER = "its agent has not reported since the scheduler started"
_SILENT = ("its agent is silent for ", f" s, {DOWN_SECONDS:.0f} s allowed")


def _is_forced_down(host: Host) -> bool:
    return host.forced_down


def _silent(columns: HostColumns, request: RequestSpec) -> Mask:
    return (columns.silent > DOWN_SECONDS) | columns.where(_is_forced_down, bool)


def _why_silent(
    columns: HostColumns, request: RequestSpec, positions: Rows, most: int | None
) -> Iterator[Group]:
    """Return reasons by group, with the seconds as a column."""
    forced = columns.where(_is_forced_down, bool)[positions]
    never = np.isinf(columns.silent[positions])
    for chosen, text in ((forced, _FORCED), (~forced & never, _NEVER)):
        if chosen.any():
            yield Group(positions[chosen], constant(text))
    overdue = positions[~forced & ~never]
    if len(overdue):
        # Rounded to even, as when a sentence is formatted.
        seconds = np.rint(columns.silent[overdue]).astype(np.int64)
        yield Group(overdue, lambda: _SILENT, (seconds,))


@host_filter(after=None, words="an agent that is silent")
@refusing(_silent, by_group=_why_silent)
def service_up(host: Host, request: RequestSpec) -> str | None:
    """Refuse hosts whose agent is silent, or that an administrator forced down."""
    if host.forced_down:
        return _FORCED
    if host.silent_seconds <= DOWN_SECONDS:
        return None
    if host.silent_seconds == float("inf"):
        return _NEVER
    return f"{host.silent_seconds:.0f}".join(_SILENT)


def _is_disabled(host: Host) -> bool:
    return host.disabled


def _disabled(columns: HostColumns, request: RequestSpec) -> Mask:
    marked = columns.with_traits(lambda traits: DISABLED_TRAIT in traits)
    return marked | columns.where(_is_disabled, bool)


@host_filter(after="service_up", words="a service that is disabled")
@refusing(_disabled, same_reason=for_all_hosts)
def service_enabled(host: Host, request: RequestSpec) -> str | None:
    """Refuse hosts that an administrator disabled, or that are marked so in placement."""
    disabled = host.disabled or DISABLED_TRAIT in host.traits
    return "disabled by an administrator" if disabled else None


def _health(host: Host) -> str | None:
    return None if host.facts.healthy else host.facts.health


@host_filter(after="service_enabled", words="a node that is not healthy")
@host_fact(_health)
def node_healthy(health: str | None, request: RequestSpec) -> str | None:
    """Refuse nodes that are offline, without quorum or lacking privileges."""
    return health
