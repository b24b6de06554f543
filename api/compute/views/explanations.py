"""How the ledger's story of an operation looks, to its owner and to an operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.compute.views import faults
from common import clock
from common.states import SHOWN_ACTION, OperationState
from db.reads.operations import Decision, Event, OperationFault, Story, Transition


def story(story: Story, *, operator: bool) -> dict[str, Any]:
    """An operation with its transitions, steps, decisions and faults, in order of time.

    Without `operator` there are no hosts, tasks, logs, and no messages of the inside.
    """
    operation = story.operation
    failed = operation.state == OperationState.FAILED
    view = {
        "action": SHOWN_ACTION.get(operation.action, operation.action),
        "server": operation.server_uuid,
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
        "decisions": [_decision(decision, operator=operator) for decision in story.decisions],
        "faults": [_fault(fault, operator=operator) for fault in story.faults],
    }
    if operator:
        view["message"] = operation.message
    elif failed and story.faults:
        view["message"] = faults.message(story.faults[-1], operator=False)
    else:
        view["message"] = "The operation failed." if failed else None
    return view


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


def refusals(body: Mapping[str, Any]) -> dict[str, Any]:
    """A decision's body with the reason of each host, however they were kept."""
    refused = {
        name: {host: reason for reason, hosts in reasons.items() for host in hosts}
        for name, reasons in body.get("refused", {}).items()
    }
    return {**body, "refused": refused}


def _decision(decision: Decision, *, operator: bool) -> dict[str, Any]:
    """The decision; its owner reads how many hosts each filter refused, not which and why."""
    body = decision.body
    view: dict[str, Any] = {
        "attempt": decision.attempt,
        "at": clock.iso_microseconds(decision.created_at),
    }
    if operator:
        return view | {k: value for k, value in refusals(body).items() if k != "server_uuid"}
    return view | {
        "considered": body.get("considered", 0),
        "placed": body.get("host") is not None,
        "refused": body.get("counts", {}),
        "reason": body.get("reason"),
    }


def _fault(fault: OperationFault, *, operator: bool) -> dict[str, Any]:
    view: dict[str, Any] = {
        "attempt": fault.attempt,
        "category": fault.category,
        "code": fault.code,
        "message": faults.message(fault, operator=operator),
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
