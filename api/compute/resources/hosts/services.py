"""`/os-services`: the services of the cloud, for operators."""

from __future__ import annotations

import uuid
from typing import Any

from oslo_utils import strutils

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import operators as schemas
from api.compute.views.hosts import disabled_reason, is_up
from common import clock, digits, ids
from common.errors import Invalid, NotFound
from db.reads.hosts import services
from db.reads.hosts.services import Service
from db.reads.servers.servers import COMPUTE


class Services:
    """The services; only compute services can be changed."""

    @operation("os-services:list", query=schemas.LIST_SERVICES)
    def index(self, call: Call) -> Any:
        """List services, filtered by host or binary."""
        found = call.read(
            services.list_services,
            host=call.query.last("host"),
            binary=call.query.last("binary"),
        )
        return {"services": [_view(call, service) for service in found]}

    @operation("os-services:update", since="2.53", body=schemas.UPDATE_SERVICE)
    def update(self, call: Call, service_id: str) -> Any:
        """Enable, disable or force down a compute service."""
        service = _find(call, service_id)
        _must_be_compute(service.binary)
        disabled, reason = _status(call.body)
        forced = call.body.get("forced_down")
        if disabled is None and forced is None:
            raise Invalid(
                "No updates were requested. Fields 'status' or 'forced_down' should be specified."
            )
        call.conductor.update_service(
            call.ctxt,
            service.uuid,
            disabled=disabled,
            reason=reason,
            forced_down=None if forced is None else _boolean(forced),
        )
        return {"service": _view(call, _find(call, service_id))}

    @operation("os-services:update", until="2.52", body=schemas.UPDATE_SERVICE)
    def update_by_name(self, call: Call, service_id: str) -> Any:
        """Do the same before 2.53: the path names the action, the body the service."""
        change = _CHANGES.get(service_id)
        if change is None or (service_id == "force-down" and call.version < 11):
            raise NotFound("Unknown action")
        host, binary = call.body["host"], call.body["binary"]
        _must_be_compute(binary)
        answer, wanted = change(call.body)
        found = call.read(services.list_services, host=host, binary=binary)
        if not found:
            raise NotFound(f"Could not find binary {binary} on host {host}.")
        call.conductor.update_service(call.ctxt, found[0].uuid, **wanted)
        return {"service": {"host": host, "binary": binary, **answer}}

    @operation("os-services:delete", status=204)
    def delete(self, call: Call, service_id: str) -> None:
        """Delete a service; 409 while servers are on its host."""
        service = _find(call, service_id, f"Service {service_id} not found.")
        call.conductor.delete_service(call.ctxt, service.uuid)


def _view(call: Call, service: Service) -> dict[str, Any]:
    down_seconds = call.cloud.conf.api.service_down_seconds
    up = is_up(service, down_seconds)
    reason = disabled_reason(service.disabled_reason, service, disabled=service.disabled)
    view: dict[str, Any] = {
        "id": service.uuid if call.version >= 53 else service.id,
        "binary": service.binary,
        "host": service.host,
        "zone": service.availability_zone,
        "status": "disabled" if service.disabled else "enabled",
        "state": "up" if up else "down",
        "updated_at": clock.iso_microseconds(service.last_seen_at),
        "disabled_reason": reason,
    }
    if call.version >= 11:
        view["forced_down"] = service.forced_down
    return view


def _find(call: Call, service_id: str, refusal: str | None = None) -> Service:
    """Return the service of a UUID, before 2.53 of a number."""
    found: Service | None = None
    if call.version >= 53:
        if not ids.is_uuid(service_id):
            raise Invalid(f"Invalid uuid {service_id}")
        found = call.read(services.find, str(uuid.UUID(service_id)))
    else:
        number = digits.number(service_id, 2**31 - 1)
        if number is None:
            raise Invalid("Invalid input received: id must be an integer")
        found = call.read(services.find_by_id, number)
    if found is None:
        raise NotFound(refusal or f"Service {service_id} could not be found.")
    return found


def _must_be_compute(binary: str) -> None:
    if binary != COMPUTE:
        raise Invalid(
            f"Updating a {binary} service is not supported. "
            "Only nova-compute services can be updated."
        )


def _status(body: dict[str, Any]) -> tuple[bool | None, str | None]:
    """(whether to disable, why) of a body since 2.53."""
    status, reason = body.get("status"), body.get("disabled_reason")
    if status is None:
        return None, None
    if status == "enabled" and reason:
        raise Invalid("Specifying 'disabled_reason' with status 'enabled' is invalid.")
    return status == "disabled", reason


def _boolean(value: Any) -> bool:
    return bool(strutils.bool_from_string(value, strict=True))


Change = tuple[dict[str, Any], dict[str, Any]]


def _enable(body: dict[str, Any]) -> Change:
    return {"status": "enabled"}, {"disabled": False}


def _disable(body: dict[str, Any]) -> Change:
    return {"status": "disabled"}, {"disabled": True}


def _disable_with_reason(body: dict[str, Any]) -> Change:
    reason = body.get("disabled_reason")
    if reason is None:
        raise Invalid("Missing disabled reason field")
    answer = {"status": "disabled", "disabled_reason": reason}
    return answer, {"disabled": True, "reason": reason}


def _force_down(body: dict[str, Any]) -> Change:
    if "forced_down" not in body:
        raise Invalid("Missing forced_down field")
    forced = _boolean(body["forced_down"])
    return {"forced_down": forced}, {"forced_down": forced}


#: last part of the path before 2.53 → (what is answered, what the conductor is asked)
_CHANGES = {
    "enable": _enable,
    "disable": _disable,
    "disable-log-reason": _disable_with_reason,
    "force-down": _force_down,
}
