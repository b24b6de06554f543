"""Zones, services, hosts and pools: where volumes can be."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from api.compute.views.hosts import is_up
from api.volume.call import Call, operation
from api.volume.views import moment
from common.errors import NotFound
from db.reads import backends, services
from db.reads.backends import Backend
from db.reads.services import Service

_BINARY = "cinder-volume"


class Overview:
    """What there is besides volumes."""

    @operation("volume:get_all")
    def zones(self, call: Call) -> Any:
        """List availability zones: those of compute."""
        names = sorted({one.availability_zone for one in _compute(call)})
        shown = [{"zoneName": name, "zoneState": {"available": True}} for name in names]
        return {"availabilityZoneInfo": shown}

    @operation("volume_extension:services:index")
    def services(self, call: Call) -> Any:
        """List the services that make volumes: the agents of the hosts."""
        shown = [
            {
                "binary": _BINARY,
                "host": one.host,
                "zone": one.availability_zone,
                "status": "disabled" if one.disabled else "enabled",
                "state": "up" if _is_up(call, one) else "down",
                "updated_at": moment(one.last_seen_at),
                "disabled_reason": one.disabled_reason,
                "replication_status": "disabled",
                "active_backend_id": None,
                "frozen": False,
            }
            for one in _compute(call)
        ]
        wanted = call.query.last("host"), call.query.last("binary")
        return {
            "services": [
                one
                for one in shown
                if wanted[0] in (None, one["host"]) and wanted[1] in (None, one["binary"])
            ]
        }

    @operation("volume_extension:hosts")
    def hosts(self, call: Call) -> Any:
        """List the hosts of these services."""
        shown = [
            {
                "host_name": one.host,
                "service": _BINARY,
                "zone": one.availability_zone,
                "service-status": "available" if _is_up(call, one) else "unavailable",
                "service-state": "disabled" if one.disabled else "enabled",
                "last-update": moment(one.last_seen_at),
            }
            for one in _compute(call)
        ]
        return {"hosts": shown}

    @operation("scheduler_extension:scheduler_stats:get_pools")
    def pools(self, call: Call) -> Any:
        """List the storages that take volumes, each once in its cluster."""
        detailed = call.query.boolean("detail")
        by_pool: defaultdict[tuple[str, str, str], list[Backend]] = defaultdict(list)
        for one in call.read(backends.read):
            by_pool[one.pool].append(one)
        shown = [_pool(found[0], detailed=detailed) for _, found in sorted(by_pool.items())]
        return {"pools": shown}

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
                    "driver_version": None,
                    "storage_protocol": one.storage.type,
                    "display_name": None,
                    "description": None,
                    "visibility": None,
                    "replication_targets": [],
                    "properties": {},
                }
        raise NotFound(f"The host {host} could not be found.")


def _compute(call: Call) -> list[Service]:
    return call.read(services.list_services, binary="nova-compute")


def _is_up(call: Call, one: Service) -> bool:
    seconds = call.cloud.conf.api.service_down_seconds
    return is_up(one.last_seen_at, one.forced_down, seconds)


def _name(one: Backend) -> str:
    return f"{one.host}@{one.storage.name}#{one.storage.name}"


def _pool(one: Backend, *, detailed: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": _name(one)}
    if detailed:
        shown["capabilities"] = {
            "volume_backend_name": one.storage.name,
            "storage_protocol": one.storage.type,
            "total_capacity_gb": one.storage.total_gib,
            "free_capacity_gb": one.storage.available_gib,
            "vendor_name": "Proxmox VE",
            "multiattach": False,
            "thin_provisioning_support": True,
            "QoS_support": False,
        }
    return shown


OVERVIEW = Overview()
