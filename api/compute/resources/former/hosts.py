"""`/os-hosts`, before 2.43: hosts and what their servers take."""

from __future__ import annotations

from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import operators as schemas
from common.errors import NotFound, Unimplemented
from db.reads.hosts import hosts, services
from db.reads.hosts.hosts import Host
from db.reads.servers.servers import COMPUTE

_UNTIL = "2.42"
#: the zone of services that carry no servers
_INTERNAL = "internal"


class Hosts:
    """Hosts, as clients of old knew them."""

    @operation("os-hosts:list", until=_UNTIL, query=schemas.LIST_HOSTS)
    def index(self, call: Call) -> Any:
        """List the services that aren't disabled, with host and zone."""
        zone = call.query.last("zone")
        found = [
            {
                "host_name": service.host,
                "service": service.binary.removeprefix("nova-"),
                "zone": service.availability_zone if service.binary == COMPUTE else _INTERNAL,
            }
            for service in call.read(services.list_services)
            if not service.disabled
        ]
        return {"hosts": [one for one in found if not zone or one["zone"] == zone]}

    @operation("os-hosts:show", until=_UNTIL)
    def show(self, call: Call, host: str) -> Any:
        """Show a host's resources, and what each project's servers use of them."""
        found = _find(call, host)
        facts = found.facts
        whole = (facts.get("vcpus", 0), facts.get("memory_mib", 0), facts.get("disk_gib", 0))
        used = (found.vcpus_used, facts.get("memory_used_mib", 0), facts.get("disk_used_gib", 0))
        asked = (found.vcpus_used, found.memory_used_mib, found.disk_used_gib)
        rows = [("(total)", *whole), ("(used_now)", *used), ("(used_max)", *asked)]
        rows += call.read(hosts.used_by_project, host)
        return {"host": [_resource(host, *row) for row in rows]}

    @operation("os-hosts:update", until=_UNTIL, body=schemas.UPDATE_HOST)
    def update(self, call: Call, host: str) -> Any:
        """Enable or disable a host; there is no maintenance mode."""
        found = _find(call, host)
        if "maintenance_mode" in call.body:
            raise Unimplemented
        disabled = call.body["status"].lower() == "disable"
        call.conductor.update_service(call.ctxt, found.service_uuid, disabled=disabled)
        return {"host": host, "status": "disabled" if disabled else "enabled"}

    @operation("os-hosts:start", until=_UNTIL)
    def startup(self, call: Call, host: str) -> Any:
        """Refuse: hosts are not started from here."""
        return _refuse(call, host)

    @operation("os-hosts:shutdown", until=_UNTIL)
    def shutdown(self, call: Call, host: str) -> Any:
        """Refuse: hosts are not shut down from here."""
        return _refuse(call, host)

    @operation("os-hosts:reboot", until=_UNTIL)
    def reboot(self, call: Call, host: str) -> Any:
        """Refuse: hosts are not rebooted from here."""
        return _refuse(call, host)


def _find(call: Call, host: str) -> Host:
    found: Host | None = call.read(hosts.find_by_name, host)
    if found is None:
        raise NotFound(f"Compute host {host} could not be found.")
    return found


def _refuse(call: Call, host: str) -> None:
    _find(call, host)
    raise Unimplemented


def _resource(host: str, project: str, vcpus: int, memory: int, disk: int) -> dict[str, Any]:
    return {
        "resource": {
            "host": host,
            "project": project,
            "cpu": vcpus,
            "memory_mb": memory,
            "disk_gb": disk,
        }
    }
