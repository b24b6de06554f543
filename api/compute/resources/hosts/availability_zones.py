"""`/os-availability-zone`: the zones of aggregates and hosts."""

from __future__ import annotations

from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.views.hosts import is_up
from common import clock
from db.reads.hosts import services
from db.reads.hosts.services import Service

INTERNAL = "internal"
"""The zone of services that run no servers; users don't see it."""


class AvailabilityZones:
    """The zones; one is available while a service in it is enabled."""

    @operation("os-availability-zone:list")
    def index(self, call: Call) -> Any:
        """List availability zones."""
        zones = _zones(call)
        listed = [
            {"zoneName": zone, "zoneState": {"available": bool(enabled)}, "hosts": None}
            for zone, enabled in _available_first(zones)
            if zone != INTERNAL
        ]
        return {"availabilityZoneInfo": listed}

    @operation("os-availability-zone:detail")
    def detail(self, call: Call) -> Any:
        """List availability zones with their hosts and services."""
        listed = [
            {
                "zoneName": zone,
                "zoneState": {"available": bool(enabled)},
                "hosts": _hosts(call, enabled) if enabled else None,
            }
            for zone, enabled in _available_first(_zones(call))
        ]
        return {"availabilityZoneInfo": listed}


def _zones(call: Call) -> dict[str, list[Service]]:
    """{zone: its enabled services}."""
    zones: dict[str, list[Service]] = {}
    for service in call.read(services.list_services):
        enabled = zones.setdefault(service.availability_zone, [])
        if not service.disabled:
            enabled.append(service)
    return zones


def _available_first(zones: dict[str, list[Service]]) -> list[tuple[str, list[Service]]]:
    return sorted(zones.items(), key=lambda item: (not item[1], item[0]))


def _hosts(call: Call, enabled: list[Service]) -> dict[str, Any]:
    down_seconds = call.cloud.conf.api.service_down_seconds
    hosts: dict[str, dict[str, Any]] = {}
    for service in enabled:
        hosts.setdefault(service.host, {})[service.binary] = {
            "available": is_up(service, down_seconds),
            "active": True,
            "updated_at": clock.iso_microseconds(service.last_seen_at),
        }
    return hosts
