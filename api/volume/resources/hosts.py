"""`/os-hosts`, `/os-services/{action}` and `/workers/cleanup`, about the hosts of compute."""

from __future__ import annotations

from typing import Any

from api.volume import schemas
from api.volume.call import Call, operation
from api.volume.resources.overview import BINARY, compute_services, service_is_up
from api.volume.views import moment
from common.errors import Invalid, NotFound
from db.reads.volumes import volumes

#: actions on services (cinder/api/v3/services.py) that are refused
_ACTIONS = frozenset(
    {
        *("freeze", "thaw", "failover_host", "failover", "set-log", "get-log"),
    }
)
#: what says in a request for a cleanup where a resource is (cinder/api/v3/workers.py)
_PLACES = frozenset({"service_id", "cluster_name", "host"})
_BY_SERVICE = "Have PUT /os-services/disable or /os-services/enable say where new volumes may be."


class Hosts:
    """The hosts whose agents make volumes."""

    @operation("volume_extension:hosts")
    def index(self, call: Call) -> Any:
        """List hosts."""
        zone = call.query.last("zone")
        shown = [
            {
                "host_name": one.host,
                "service": BINARY,
                "zone": one.availability_zone,
                "service-status": "available" if service_is_up(call, one) else "unavailable",
                "service-state": "disabled" if one.volumes_disabled else "enabled",
                "last-update": moment(one.last_seen_at),
            }
            for one in compute_services(call)
            if not zone or zone == one.availability_zone
        ]
        return {"hosts": shown}

    @operation("volume_extension:hosts")
    def show(self, call: Call, host: str) -> Any:
        """Show what projects have on a host; sizes in GiB, and all numbers as text."""
        _require(call, host)
        found = call.read(volumes.of_host, host)
        total = tuple(sum(column) for column in zip(*found.values(), strict=True))
        rows = {"(total)": total or (0, 0, 0, 0), **found}
        names = ("volume_count", "total_volume_gb", "snapshot_count", "total_snapshot_gb")
        return {
            "host": [
                {
                    "resource": {
                        "host": host,
                        "project": project,
                        **dict(zip(names, map(str, row), strict=True)),
                    }
                }
                for project, row in rows.items()
            ]
        }

    @operation("volume_extension:hosts")
    def update(self, call: Call, host: str) -> Any:
        """Refuse to change one."""
        _require(call, host)
        raise Invalid(f"Invalid input received: {_BY_SERVICE}")

    @operation("volume_extension:services:update")
    def act(self, call: Call, name: str) -> Any:
        """Refuse to change a service."""
        if name not in _ACTIONS:
            raise NotFound("Unknown action")
        raise Invalid(f"Invalid input received: {name} is not done here.")

    @operation("volume_extension:services:update", body=schemas.ENABLE)
    def enable(self, call: Call) -> Any:
        """Allow new volumes on a host."""
        return self._set(call, None, disabled=False)

    @operation("volume_extension:services:update", body=schemas.ENABLE)
    def disable(self, call: Call) -> Any:
        """Allow no new volumes on a host; its existing volumes remain usable."""
        answer = self._set(call, None, disabled=True)
        del answer["disabled_reason"]
        return answer

    @operation("volume_extension:services:update", body=schemas.DISABLE_FOR_A_REASON)
    def disable_for_a_reason(self, call: Call) -> Any:
        """Allow no new volumes on a host, with a reason."""
        return self._set(call, call.body.get("disabled_reason"), disabled=True)

    @staticmethod
    def _set(call: Call, reason: str | None, *, disabled: bool) -> dict[str, Any]:
        asked = call.body
        host, binary = asked.get("host", ""), asked.get("binary") or asked.get("service")
        for one in compute_services(call):
            if (one.host, BINARY) == (host, binary):
                call.conductor.update_volume_service(
                    call.ctxt, one.uuid, disabled=disabled, reason=reason
                )
                return {
                    "host": host,
                    "service": asked.get("service", ""),
                    "binary": asked.get("binary", ""),
                    "status": "disabled" if disabled else "enabled",
                    "disabled": disabled,
                    "disabled_reason": reason,
                }
        raise NotFound(f"Service {binary} could not be found on host {host}.")

    @operation("workers:cleanup", since="3.24", status=202, body=schemas.CLEANUP)
    def clean_up(self, call: Call) -> Any:
        """Clean up nothing: conductors take over what died by themselves."""
        asked = call.body or {}
        wanted = asked.get("resource_id")
        if wanted and not _PLACES & asked.keys():
            raise Invalid(
                f"Invalid input received: There is no resource with UUID {wanted} pending cleanup."
            )
        return {"cleaning": [], "unavailable": []}


def _require(call: Call, host: str) -> None:
    if all(one.host != host for one in compute_services(call)):
        raise NotFound(f"Host {host} could not be found.")
