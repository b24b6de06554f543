"""Zones, services, hosts and pools: where volumes can be."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from api.compute.views.hosts import is_up
from api.volume.call import Call, operation
from api.volume.views import moment
from common.errors import Invalid, NotFound
from db.reads import backends, services
from db.reads.backends import Backend
from db.reads.services import Service

_BINARY = "cinder-volume"
_SERVICE_ACTIONS = frozenset(
    {"enable", "disable", "disable-log-reason", "freeze", "thaw", "failover", "failover_host"}
    | {"set-log", "get-log"}
)


class Overview:
    """What there is besides volumes."""

    @operation("volume:get_all")
    def zones(self, call: Call) -> Any:
        """List availability zones: those of compute."""
        shown = [
            {"zoneName": name, "zoneState": {"available": True}} for name in sorted(zones(call))
        ]
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
                "state": _state(call, one),
                "updated_at": moment(one.last_seen_at),
                "disabled_reason": one.disabled_reason,
                "replication_status": "disabled",
                "active_backend_id": None,
                "frozen": False,
                **({"cluster": None} if call.version >= 7 else {}),
                **({"backend_state": _state(call, one)} if call.version >= 49 else {}),
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

    @operation("volume_extension:services:update")
    def change_service(self, call: Call, action: str) -> Any:
        """Refuse: these are the compute API's services."""
        if action not in _SERVICE_ACTIONS:
            raise NotFound
        raise Invalid(
            f"{action[:255]} is not done here: the services are the agents of hosts, which the "
            "compute API enables and disables."
        )

    @operation("workers:cleanup", since="3.24")
    def clean_up(self, call: Call) -> Any:
        """Refuse: what a service left undone is taken over without being told to."""
        raise Invalid("There is nothing to clean up: operations are taken over by themselves.")

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
        detailed, name = call.query.boolean("detail"), call.query.last("name")
        by_pool: defaultdict[tuple[str, str, str], list[Backend]] = defaultdict(list)
        for one in call.read(backends.read):
            by_pool[one.pool].append(one)
        shown = [_pool(found[0], detailed=detailed) for _, found in sorted(by_pool.items())]
        return {"pools": [one for one in shown if name in (None, one["name"])]}

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


def zones(call: Call) -> set[str]:
    """Return the availability zones that there are."""
    return {one.availability_zone for one in _compute(call)}


def _compute(call: Call) -> list[Service]:
    return call.read(services.list_services, binary="nova-compute")


def _is_up(call: Call, one: Service) -> bool:
    seconds = call.cloud.conf.api.service_down_seconds
    return is_up(one.last_seen_at, one.forced_down, seconds)


def _state(call: Call, one: Service) -> str:
    return "up" if _is_up(call, one) else "down"


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
            "backend_state": "up",
        }
    return shown


OVERVIEW = Overview()
