"""Is the host's agent there, enabled, and its node healthy?"""

from __future__ import annotations

from common.messages.scheduling import Requested
from scheduler.columnar import by, refusing
from scheduler.fleet import Fleet, Mask
from scheduler.hosts import Host

#: the standard trait that marks a disabled compute service in placement (as Nova sets it)
DISABLED_TRAIT = "COMPUTE_STATUS_DISABLED"

#: a host whose agent was silent for longer is down; agents report every 10 s
DOWN_SECONDS = 60.0


def _is_forced_down(host: Host) -> bool:
    return host.forced_down


def _silent(fleet: Fleet, request: Requested) -> Mask:
    return (fleet.silent > DOWN_SECONDS) | fleet.where(_is_forced_down, bool)


@refusing(_silent)
def service_up(host: Host, request: Requested) -> str | None:
    """Refuse hosts whose agent is silent, or that an administrator forced down."""
    if host.forced_down:
        return "forced down by an administrator"
    if host.silent_seconds <= DOWN_SECONDS:
        return None
    if host.silent_seconds == float("inf"):
        return "its agent has not reported since the scheduler started"
    return f"its agent is silent for {host.silent_seconds:.0f} s, {DOWN_SECONDS:.0f} s allowed"


def _is_disabled(host: Host) -> bool:
    return host.disabled


def _disabled(fleet: Fleet, request: Requested) -> Mask:
    marked = fleet.with_traits(lambda traits: DISABLED_TRAIT in traits)
    return marked | fleet.where(_is_disabled, bool)


@refusing(_disabled)
def service_enabled(host: Host, request: Requested) -> str | None:
    """Refuse hosts that an administrator disabled, or that are so marked in placement."""
    disabled = host.disabled or DISABLED_TRAIT in host.traits
    return "disabled by an administrator" if disabled else None


def _health(host: Host) -> str | None:
    return None if host.facts.healthy else host.facts.health


@by(_health)
def node_healthy(health: str | None, request: Requested) -> str | None:
    """Refuse nodes that are offline, without quorum or lacking privileges."""
    return health
