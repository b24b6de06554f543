"""Zones, services, hosts and pools: where volumes can be."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from api.compute.views.hosts import disabled_reason, is_up
from api.volume import filters
from api.volume.call import Call, operation
from api.volume.views import moment
from common.errors import NotFound
from db.reads.hosts import services
from db.reads.hosts.services import Service
from db.reads.volumes import backends, volumes
from db.reads.volumes.backends import Backend

BINARY = "cinder-volume"
#: of what is called driver here: it has no versions of its own
_VERSION = "1.0"
#: from when on pools are filtered
_FILTERED_SINCE = 28
_FILTERED_BY_TYPE_SINCE = 35


class Overview:
    """What there is besides volumes."""

    @operation("volume:get_all")
    def zones(self, call: Call) -> Any:
        """List availability zones: those of compute."""
        names = sorted(zones(call))
        shown = [{"zoneName": name, "zoneState": {"available": True}} for name in names]
        return {"availabilityZoneInfo": shown}

    @operation("volume_extension:services:index")
    def services(self, call: Call) -> Any:
        """List the services that make volumes: the agents of the hosts."""
        shown = [
            {
                "binary": BINARY,
                "host": one.host,
                "zone": one.availability_zone,
                "status": "disabled" if one.volumes_disabled else "enabled",
                "state": "up" if service_is_up(call, one) else "down",
                "updated_at": moment(one.last_seen_at),
                "disabled_reason": disabled_reason(
                    one.volumes_disabled_reason, one, disabled=one.volumes_disabled
                ),
                "replication_status": "disabled",
                "active_backend_id": None,
                "frozen": False,
                **_since(call, up=service_is_up(call, one)),
            }
            for one in compute_services(call)
        ]
        wanted = call.query.last("host"), call.query.last("binary")
        return {
            "services": [
                one
                for one in shown
                if wanted[0] in (None, one["host"]) and wanted[1] in (None, one["binary"])
            ]
        }

    @operation("scheduler_extension:scheduler_stats:get_pools")
    def pools(self, call: Call) -> Any:
        """List the storages that take volumes, each once in its cluster."""
        detailed = call.query.boolean("detail")
        filters.require_known(call, "pool")
        storage = _storage_of_type(call)
        by_pool: defaultdict[tuple[str, str, str], list[Backend]] = defaultdict(list)
        for one in call.read(backends.read):
            if storage in (None, one.storage.name):
                by_pool[one.pool].append(one)
        shown = [_pool(found[0], detailed=detailed) for _, found in sorted(by_pool.items())]
        wanted = call.query.last("name") if call.version >= _FILTERED_SINCE else None
        return {"pools": [one for one in shown if wanted in (None, one["name"])]}

    @operation("scheduler_extension:scheduler_stats:get_pools")
    def capabilities(self, call: Call, host: str) -> Any:
        """Show what a storage of a host can do."""
        for one in call.read(backends.read):
            if host in (one.host, _name(one), _name(one).partition("#")[0]):
                return {
                    "namespace": f"OS::Storage::Capabilities::{host}",
                    "vendor_name": "Proxmox VE",
                    "volume_backend_name": one.storage.name,
                    "pool_name": one.storage.name,
                    "driver_version": _VERSION,
                    "storage_protocol": one.storage.type,
                    "display_name": None,
                    "description": None,
                    "visibility": None,
                    "replication_targets": [],
                    "properties": {},
                }
        raise NotFound(f"The host {host} could not be found.")


def _storage_of_type(call: Call) -> str | None:
    """Return the storage of the type that pools are asked for; None: any. Raises NotFound."""
    wanted = call.query.last("volume_type")
    if wanted is None or call.version < _FILTERED_BY_TYPE_SINCE:
        return None
    for one in call.read(volumes.types, None):
        if wanted in (one.id, one.name):
            return one.storage or None
    raise NotFound(f"Volume type {wanted} could not be found.")


def zones(call: Call) -> set[str]:
    """Return the availability zones that there are."""
    return {one.availability_zone for one in compute_services(call)}


def compute_services(call: Call) -> list[Service]:
    """Return the agents of the hosts."""
    return call.read(services.list_services, binary="nova-compute")


def service_is_up(call: Call, one: Service) -> bool:
    """Return whether an agent reports and reaches its node."""
    seconds = call.cloud.conf.api.service_down_seconds
    return is_up(one, seconds)


def _since(call: Call, *, up: bool) -> dict[str, Any]:
    """Return the fields of a service that later versions brought."""
    shown: dict[str, Any] = {"cluster": None} if call.version >= 7 else {}
    return shown | ({"backend_state": "up" if up else "down"} if call.version >= 49 else {})


def _name(one: Backend) -> str:
    return f"{one.host}@{one.storage.name}#{one.storage.name}"


def _pool(one: Backend, *, detailed: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": _name(one)}
    if detailed:
        shown["capabilities"] = one.capabilities
    return shown
