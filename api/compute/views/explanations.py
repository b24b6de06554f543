"""Views of the ledger's history of an operation, for its owner and for operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from api.compute.views import faults
from common import clock, codec
from common.messages.reports import Category
from common.messages.scheduling import Refused
from common.resources.states import SHOWN_ACTION, OperationState
from common.story.failure_words import owner_sentence
from db.reads.images.images import Image
from db.reads.ledger.operations import (
    Decision,
    Event,
    Operation,
    OperationFault,
    Story,
    Transition,
)
from db.reads.ledger.refusals import ASKED_BY, Refusal
from db.reads.networks.networks import Port
from db.reads.volumes.snapshots import Snapshot
from db.reads.volumes.transfers import Transfer
from db.reads.volumes.volumes import Volume

#: what owners read of a host that is down
HOST_DOWN = "The server's host does not answer: what is asked of the server waits until it does."


def port(port: Port, *, operator: bool) -> dict[str, Any]:
    """Return what a port is now; operators also read where its server is."""
    view: dict[str, Any] = {
        "id": port.id,
        "name": port.name,
        "status": port.status,
        "mac_address": port.mac,
        "addresses": [one["ip_address"] for one in port.fixed_ips],
        "network_id": port.network_id,
        "server": port.server_uuid or None,
        "filtered": bool(port.port_security),
        "security_groups": list(port.security_groups),
    }
    return view | {"host": port.host, "bridge": port.bridge} if operator else view


def image(image: Image) -> dict[str, Any]:
    """Return what an image is now."""
    return {
        "id": image.id,
        "name": image.name,
        "status": image.status,
        "visibility": image.visibility,
        "project_id": image.project_id,
        "size_bytes": image.size_bytes,
        "server": image.server_uuid,
    }


def volume(volume: Volume, *, operator: bool) -> dict[str, Any]:
    """Return what a volume is now; operators also read where it is, and why it is in error."""
    view: dict[str, Any] = {
        "id": volume.id,
        "name": volume.name,
        "status": volume.status,
        "size_gib": volume.size_gib,
        "type": volume.type_name,
        "project_id": volume.project_id,
        "servers": [one.server_uuid for one in volume.attachments],
    }
    where = {"host": volume.host, "storage": volume.storage, "fault": volume.fault}
    return view | where if operator else view


def snapshot(snapshot: Snapshot, *, operator: bool) -> dict[str, Any]:
    """Return what a snapshot of a volume is now; operators also read why it is in error."""
    view: dict[str, Any] = {
        "id": snapshot.id,
        "name": snapshot.name,
        "status": snapshot.status,
        "size_gib": snapshot.size_gib,
        "volume": snapshot.volume_id,
        "project_id": snapshot.project_id,
    }
    return view | {"fault": snapshot.fault} if operator else view


def transfer(transfer: Transfer) -> dict[str, Any]:
    """Return what a transfer of a volume is now, also after its end."""
    ended = "accepted" if transfer.accepted else "deleted"
    return {
        "id": transfer.id,
        "name": transfer.name or "",
        "status": "offered" if transfer.ended_at is None else ended,
        "volume": transfer.volume_id,
        "source_project_id": transfer.source_project_id,
        "destination_project_id": transfer.destination_project_id,
        "with_snapshots": not transfer.no_snapshots,
        "ended_at": clock.iso_microseconds(transfer.ended_at),
    }


def story(story: Story, *, operator: bool) -> dict[str, Any]:
    """Return an operation with its transitions, steps, decisions and faults, in order of time.

    Without `operator` it has no hosts, tasks, logs or internal messages.
    """
    operation = story.operation
    failed = operation.state == OperationState.FAILED
    view = {
        "action": SHOWN_ACTION.get(operation.action, operation.action),
        "server": operation.server_uuid or None,
        "resource": {"type": operation.resource_type, "id": operation.resource_id},
        "request_id": operation.request_id,
        "global_request_id": operation.global_request_id,
        "project_id": operation.project_id,
        "user_id": operation.user_id,
        "state": operation.state,
        "attempts": operation.attempt,
        "held": story.held,
        "started_at": clock.iso_microseconds(operation.started_at),
        "updated_at": clock.iso_microseconds(operation.updated_at),
        "finished_at": clock.iso_microseconds(operation.finished_at),
        "transitions": [_transition(move) for move in story.transitions],
        "events": [_event(event, operator=operator) for event in story.events],
        "decisions": [
            _decision(decision, operation.resource_type, operator=operator)
            for decision in story.decisions
        ],
        "faults": [
            _fault(fault, operation.resource_type, operator=operator) for fault in story.faults
        ],
        "forgotten": _forgotten(operation),
        "waits_until": _waits_until(operation),
    }
    if operator:
        waits = view["waits_until"] is not None and not story.held and operation.server_uuid
        view["retry"] = f"micronova server retry {operation.server_uuid}" if waits else None
        view["message"] = operation.message
    elif failed and story.faults:
        view["message"] = faults.message(
            story.faults[-1], operator=False, resource_type=operation.resource_type
        )
    else:
        view["message"] = "The operation failed." if failed else None
    return view


def may_wait_for_room(operation: Operation) -> bool:
    """Return whether it is a build that is not worked on until a later time."""
    return operation.action == "create" and _waits_until(operation) is not None


def _waits_until(operation: Operation) -> str | None:
    """Return when the next attempt begins, if it waits for one."""
    at = operation.not_before
    waits = operation.finished_at is None and at is not None and at > clock.utcnow()
    return clock.iso_microseconds(at) if waits else None


def _forgotten(operation: Operation) -> dict[str, Any] | None:
    """Since when the details are deleted, and how many days after the end that was."""
    at = operation.forgotten_at
    if at is None:
        return None
    kept = at - (operation.finished_at or operation.updated_at)
    return {"at": clock.iso_microseconds(at), "after_days": kept.days}


def _transition(move: Transition) -> dict[str, Any]:
    return {
        "at": clock.iso_microseconds(move.at),
        "from": {"vm_state": move.from_vm_state, "task_state": move.from_task_state},
        "to": {"vm_state": move.to_vm_state, "task_state": move.to_task_state},
    }


def _event(event: Event, *, operator: bool) -> dict[str, Any]:
    view: dict[str, Any] = {
        "name": event.name,
        "attempt": event.attempt,
        "started_at": clock.iso_microseconds(event.started_at),
        "finished_at": clock.iso_microseconds(event.finished_at),
        "result": event.result,
    }
    if operator:
        view |= {"host": event.host, "upid": event.upid, "detail": event.detail}
        return view
    known = (*_OWNERS_DETAIL.get(event.name, ()), "progress")
    detail = {name: event.detail[name] for name in known if name in event.detail}
    return view | ({"detail": detail} if detail or event.name in _OWNERS_DETAIL else {})


#: steps whose details the owner sees, not only progress: the request, the project's quota
_OWNERS_DETAIL: Mapping[str, Sequence[str]] = {
    "api_request": ("method", "path", "status"),
    "conductor_take_quota": (
        *("instances", "cores", "ram", "server_groups", "server_group_members"),
        *("metadata_items", "key_pairs"),
    ),
}


def refusal(refused: Refusal, *, operator: bool) -> dict[str, Any]:
    """Return a refused request, in the form of an operation that ended at once."""
    received, answered = map(clock.iso_microseconds, (refused.received_at, refused.answered_at))
    names = refused.details.get(ASKED_BY, {})
    asked = {
        "method": refused.method,
        "path": refused.path,
        "status": refused.status,
        "user": names.get("user") or refused.user_id,
        "project": names.get("project") or refused.project_id,
    }
    events = [_refused_step("api_request", refused, asked, operator=operator)]
    facts = _quota_facts(refused.details)
    if facts:
        events.append(_refused_step("conductor_take_quota", refused, facts, operator=operator))
    return {
        "action": f"{refused.method} {refused.path}",
        "server": None,
        "request_id": refused.request_id,
        "global_request_id": refused.global_request_id,
        "project_id": refused.project_id,
        "user_id": refused.user_id,
        "state": "refused",
        "attempts": 1,
        "held": False,
        "started_at": received,
        "updated_at": answered,
        "finished_at": answered,
        "transitions": [],
        "events": events,
        "decisions": [],
        "faults": [],
        "message": refused.message,
        "forgotten": None,
        "waits_until": None,
    }


def _refused_step(
    name: str, refused: Refusal, detail: Mapping[str, Any], *, operator: bool
) -> dict[str, Any]:
    step = Event(
        0, 1, name, 0, None, refused.received_at, refused.answered_at, "Error", None, detail
    )
    return _event(step, operator=operator)


def _quota_facts(details: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """The exceeded quota in the form of `conductor_take_quota`, from QuotaExceeded's details."""
    columns = [details.get(name) for name in ("resource", "limit", "used", "requested")]
    lists = [one if isinstance(one, list) else [one] for one in columns if one is not None]
    if len(lists) < len(columns):
        return {}
    return {
        str(name): {"limit": limit, "used": used, "asked": asked}
        for name, limit, used, asked in zip(*lists, strict=False)
    }


def refusals(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a decision's body for operators, with each host's reason, from either stored form."""
    refused = {name: _reasons(kept) for name, kept in body.get("refused", {}).items()}
    shown = {name: value for name, value in body.items() if name != "owner_reason"}
    return {**shown, "refused": refused}


def _reasons(kept: Sequence[Any] | Mapping[str, Sequence[str]]) -> dict[str, str]:
    if isinstance(kept, Mapping):
        # The form stored before reasons were grouped.
        return {host: reason for reason, hosts in kept.items() for host in hosts}
    return {host: reason for one in kept for host, reason in codec.load(Refused, one).reasons()}


def _decision(decision: Decision, resource_type: str, *, operator: bool) -> dict[str, Any]:
    """Return the decision; owners see the filters that refused, no hosts, counts or reasons."""
    body = decision.body
    view: dict[str, Any] = {
        "attempt": decision.attempt,
        "at": clock.iso_microseconds(decision.created_at),
    }
    if operator:
        return view | {k: value for k, value in refusals(body).items() if k != "server_uuid"}
    placed = body.get("host") is not None
    reason = body.get("owner_reason") or owner_sentence(Category.NO_VALID_HOST, resource_type)
    return view | {
        "placed": placed,
        "refused_by": sorted(body.get("counts", {})),
        "reason": None if placed else reason,
    }


def _fault(fault: OperationFault, resource_type: str, *, operator: bool) -> dict[str, Any]:
    view: dict[str, Any] = {
        "attempt": fault.attempt,
        "category": fault.category,
        "code": fault.code,
        "message": faults.message(fault, operator=operator, resource_type=resource_type),
        "at": clock.iso_microseconds(fault.created_at),
    }
    if operator:
        view |= {
            "host": fault.host,
            "upid": fault.upid,
            "log_tail": fault.log_tail,
            "cleaned": fault.cleaned,
            "left": fault.left,
            "remedy": fault.remedy,
        }
    return view
