"""Prefer the nodes that an HA rule prefers."""

from __future__ import annotations

from common.messages.scheduling import RequestSpec
from scheduler.columnar.forms import weighing
from scheduler.filters.ha import SPEC, Stands, named, stands
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host
from scheduler.hosts.host_states import Floats


def _preferred(columns: HostColumns, request: RequestSpec) -> Floats | None:
    if SPEC not in request.extra_specs:
        return None
    return columns.each(stands, lambda there: _priority(there, request))


@weighing(_preferred)
def ha_priority(host: Host, request: RequestSpec) -> float:
    """Return the host's priority in the rule that the flavor names; -1 outside of it."""
    return _priority(stands(host), request)


def _priority(there: Stands, request: RequestSpec) -> float:
    rule = named(there[1], request)
    return -1.0 if rule is None or rule.priority is None else float(rule.priority)
