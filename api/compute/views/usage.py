"""Views of usage: hours in a period, and their sums by project."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any

from common import clock
from db.reads.servers.usage import UsedServer

Period = tuple[datetime.datetime, datetime.datetime]


def hours(server: UsedServer, period: Period) -> float:
    """Return how long a server was there within a period, in hours."""
    begin, end = period
    since = max(server.launched_at, begin)
    until = end if server.terminated_at is None else min(server.terminated_at, end)
    return max(0.0, (until - since).total_seconds()) / 3600


def by_project(
    servers: Iterable[UsedServer], period: Period, *, detailed: bool
) -> list[dict[str, Any]]:
    """Return the usage of each project that has one of these servers, in their order."""
    found: dict[str, dict[str, Any]] = {}
    for server in servers:
        one = found.get(server.project_id)
        if one is None:
            one = found[server.project_id] = _nothing(server.project_id, period)
        view = _server(server, period)
        for total, name in _TOTALS.items():
            one[total] += view[name] * view["hours"]
        one["total_hours"] += view["hours"]
        if detailed:
            one.setdefault("server_usages", []).append(view)
    return list(found.values())


#: sum of a project → what of each server it sums up, times hours
_TOTALS = {
    "total_local_gb_usage": "local_gb",
    "total_vcpus_usage": "vcpus",
    "total_memory_mb_usage": "memory_mb",
}


def _nothing(project_id: str, period: Period) -> dict[str, Any]:
    begin, end = period
    return {
        "tenant_id": project_id,
        **dict.fromkeys((*_TOTALS, "total_hours"), 0.0),
        "start": clock.iso_microseconds(begin),
        "stop": clock.iso_microseconds(end),
    }


def _server(server: UsedServer, period: Period) -> dict[str, Any]:
    flavor, ended = server.flavor, server.terminated_at
    return {
        "hours": hours(server, period),
        "flavor": flavor.get("name", ""),
        "instance_id": server.uuid,
        "name": server.name,
        "tenant_id": server.project_id,
        "memory_mb": flavor.get("memory_mib", 0),
        "local_gb": flavor.get("disk_gib", 0) + flavor.get("ephemeral_gib", 0),
        "vcpus": flavor.get("vcpus", 0),
        "started_at": clock.iso_microseconds(server.launched_at),
        "ended_at": clock.iso_microseconds(ended),
        "state": "terminated" if ended else server.vm_state,
        "uptime": max(0, int(((ended or clock.utcnow()) - server.launched_at).total_seconds())),
    }
