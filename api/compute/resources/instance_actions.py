"""`/servers/{id}/os-instance-actions`: what was done to a server, from the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import the_server_even_deleted
from api.compute.schemas import server_parts as schemas
from api.compute.views import faults
from api.compute.views.servers import host_id
from common import clock
from common.errors import Invalid, NotFound
from common.resources.states import SHOWN_ACTION, OperationState
from db.reads.ledger import operations
from db.reads.ledger.operations import Event, Operation, OperationFault

_EVENTS = "os-instance-actions:events"
_DETAILS = "os-instance-actions:events:details"


class InstanceActions:
    """The operations on a server, with their steps as events."""

    @operation("os-instance-actions:list", query=schemas.LIST_ACTIONS, on=the_server_even_deleted)
    def index(self, call: Call) -> Any:
        """List a server's actions, newest first; in pages since 2.58."""
        uuid = call.server.uuid
        if call.version < 58:
            found = call.read(operations.list_operations, uuid)
            return {"instanceActions": [_action(call, one) for one in found]}
        since, before = call.query.moment("changes-since"), call.query.moment("changes-before")
        if since and before and before < since:
            raise Invalid(
                "The value of changes-since must be less than or equal to changes-before."
            )
        limit, marker = call.query.page(call.max_limit)
        found = call.read(
            operations.list_operations,
            uuid,
            limit=limit,
            marker=marker,
            changed_since=since,
            changed_before=before,
        )
        answer: dict[str, Any] = {"instanceActions": [_action(call, one) for one in found]}
        if found and len(found) == limit:
            path = f"servers/{uuid}/os-instance-actions"
            answer["links"] = call.links.after(path, call.query, found[-1].request_id)
        return answer

    @operation("os-instance-actions:show", asks=(_EVENTS,), on=the_server_even_deleted)
    def show(self, call: Call, request_id: str) -> Any:
        """Show an action; its events where the policy allows it."""
        found = call.read(operations.find, call.server.uuid, request_id)
        if found is None:
            raise NotFound(f"Action {request_id} not found")
        view = _action(call, found)
        target = {"project_id": call.server.project_id, "user_id": call.server.user_id}
        everything = call.allows(_EVENTS, target)
        if everything or call.version >= 51:
            details = call.version >= 84 and call.allows(_DETAILS, target)
            view["events"] = _events(call, found, everything=everything, details=details)
        return {"instanceAction": view}


def _action(call: Call, found: Operation) -> dict[str, Any]:
    view = {
        "action": SHOWN_ACTION.get(found.action, found.action),
        "instance_uuid": found.resource_id,
        "request_id": found.request_id,
        "user_id": found.user_id,
        "project_id": found.project_id,
        "start_time": clock.iso_microseconds(found.started_at),
        "message": _message(call, found),
    }
    if call.version >= 58:
        view["updated_at"] = clock.iso_microseconds(found.updated_at)
    return view


def _message(call: Call, found: Operation) -> str | None:
    """Return why it failed: the message for operators, Nova's word for everybody else."""
    if found.state != OperationState.FAILED:
        return None
    return found.message or "Error" if call.is_admin else "Error"


def _events(
    call: Call, found: Operation, *, everything: bool, details: bool
) -> list[dict[str, Any]]:
    """Return the steps, newest first as in Nova; `everything`: with traceback and host."""
    events = call.read(operations.events_of, [found.id])
    failed = any(event.result == "Error" for event in events)
    known = call.read(operations.faults_of, [found.id]) if failed else []
    by_attempt: Mapping[int, OperationFault] = {fault.attempt: fault for fault in known}
    return [
        _event(call, event, by_attempt.get(event.attempt), everything, details)
        for event in reversed(events)
    ]


def _event(
    call: Call, event: Event, fault: OperationFault | None, everything: bool, details: bool
) -> dict[str, Any]:
    if event.result != "Error":
        fault = None
    view: dict[str, Any] = {
        "event": event.name,
        "start_time": clock.iso_microseconds(event.started_at),
        "finish_time": clock.iso_microseconds(event.finished_at),
        "result": event.result,
    }
    if everything:
        view["traceback"] = faults.details(fault) if fault else None
    if call.version >= 62:
        view["hostId"] = host_id(event.host, call.server.project_id)
        if everything:
            view["host"] = event.host
    if details:
        view["details"] = fault.message if fault else None
    return view
