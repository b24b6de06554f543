"""Spans of an operation, made from its rows of the ledger. Pure; knows no OpenTelemetry.

A span per operation, per task_state of its server, per step and per task of Proxmox VE; attempts,
decisions and faults are events of the operation's. IDs follow from the request ID and from what a
span is about, so that an operation that is sent twice has the same spans.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from common import traceparent
from common.resources.states import OperationState
from conductor.store.ledger.stories import Event, OperationFault, Story, Traced

#: values of attributes
Value = str | bool | int | float

_UUID = re.compile(r"req-([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})")
_UPID = re.compile(r"UPID:([^:]+):[0-9A-F]+:[0-9A-F]+:([0-9A-F]{8}):([^:]+):([^:]*):.*")
#: of longer texts only the begin
_LONGEST = 1000


@dataclass(frozen=True)
class Mark:
    """Something that happened at a moment within a span."""

    name: str
    at: datetime.datetime
    attributes: Mapping[str, Value]


@dataclass(frozen=True)
class Span:
    """One span; times are aware."""

    trace_id: int
    span_id: int
    parent_id: int | None
    name: str
    begins: datetime.datetime
    ends: datetime.datetime
    attributes: Mapping[str, Value]
    marks: Sequence[Mark] = ()
    failure: str | None = None
    """Why it failed; None: it didn't."""
    remote: bool = field(default=False)
    """Whether it is work that Proxmox VE did."""


def trace_id(request_id: str, header: str | None) -> int:
    """Return the trace of a request: its caller's, or the UUID in its ID."""
    parent = traceparent.parse(header)
    if parent is not None:
        return parent.trace_id
    match = _UUID.fullmatch(request_id)
    if match is not None and (number := int(match[1].replace("-", ""), 16)):
        return number
    return int.from_bytes(hashlib.sha256(request_id.encode()).digest()[:16], "big") or 1


def span_id(*parts: object) -> int:
    """Return the ID of what these parts name."""
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") or 1


def wanted(traced: Traced, ratio: float) -> bool:
    """Return whether an operation is to be sent: as its caller says, else by its share."""
    parent = traceparent.parse(traced.traceparent)
    if parent is not None:
        return parent.sampled
    operation = traced.story.operation
    if operation.state == OperationState.FAILED or ratio >= 1:
        return True
    # As OpenTelemetry's samplers: by the lower half, alike everywhere.
    number = trace_id(operation.request_id, None) & ((1 << 64) - 1)
    return number < int(ratio * (1 << 64))


def spans_of(traced: Traced) -> list[Span]:
    """Return an operation's spans, its own first."""
    story, operation = traced.story, traced.story.operation
    trace = trace_id(operation.request_id, traced.traceparent)
    parent = traceparent.parse(traced.traceparent)
    ends = operation.finished_at or operation.updated_at
    begins = min([operation.started_at, *(one.started_at for one in story.events)])
    ends = max([ends, *(one.finished_at for one in story.events if one.finished_at)])
    whole = Span(
        trace,
        span_id(operation.id),
        None if parent is None else parent.span_id,
        f"{operation.action} {operation.resource_type}",
        begins,
        ends,
        _of_operation(story),
        tuple(sorted(_marks(story), key=lambda one: one.at)),
        (operation.message or "It failed.") if operation.state == OperationState.FAILED else None,
    )
    stages = list(_stages(story, whole))
    steps = [_step(one, story, whole, stages) for one in story.events]
    tasks = [
        task for one, step in zip(story.events, steps, strict=True) for task in _tasks(one, step)
    ]
    return [whole, *stages, *steps, *tasks]


def _of_operation(story: Story) -> dict[str, Value]:
    operation = story.operation
    shown = {
        "micronova.request_id": operation.request_id,
        "micronova.global_request_id": operation.global_request_id,
        "micronova.operation.id": operation.id,
        "micronova.operation.action": operation.action,
        "micronova.operation.state": operation.state,
        "micronova.operation.attempts": operation.attempt,
        "micronova.resource.type": operation.resource_type,
        "micronova.resource.id": operation.resource_id,
        "micronova.project_id": operation.project_id,
        "enduser.id": operation.user_id,
    }
    return {name: value for name, value in shown.items() if value is not None}


def _marks(story: Story) -> Iterator[Mark]:
    """Yield attempts, decisions and faults."""
    first: dict[int, datetime.datetime] = {}
    for one in story.events:
        first[one.attempt] = min(first.get(one.attempt, one.started_at), one.started_at)
    for number, at in first.items():
        yield Mark("attempt", at, {"micronova.attempt": number})
    for chosen in story.decisions:
        body = chosen.body
        shown = {"host": body.get("host"), "reason": body.get("reason")}
        attributes = {f"micronova.decision.{name}": str(v) for name, v in shown.items() if v}
        attempt = {"micronova.attempt": chosen.attempt}
        yield Mark("decision", chosen.created_at, {**attempt, **attributes})
    for fault in story.faults:
        yield Mark("exception", fault.created_at, _of_fault(fault))


def _of_fault(fault: OperationFault) -> dict[str, Value]:
    shown = {
        "exception.type": fault.category,
        "exception.message": fault.message,
        "micronova.attempt": fault.attempt,
        "micronova.host": fault.host,
        "proxmox.upid": fault.upid,
        "micronova.log_tail": "\n".join(fault.log_tail) or None,
        "micronova.cleaned": "; ".join(fault.cleaned) or None,
        "micronova.left": "; ".join(fault.left) or None,
        "micronova.remedy": fault.remedy,
    }
    return {name: _short(value) for name, value in shown.items() if value is not None}


def _stages(story: Story, whole: Span) -> Iterator[Span]:
    """Yield a span for each task_state that the server showed."""
    moves = story.transitions
    for number, move in enumerate(moves):
        if move.to_task_state is None:
            continue
        later = [one.at for one in moves[number + 1 :]]
        ends = max(move.at, later[0] if later else whole.ends)
        yield Span(
            whole.trace_id,
            span_id(story.operation.id, "stage", number),
            whole.span_id,
            move.to_task_state,
            move.at,
            ends,
            {"micronova.vm_state": move.to_vm_state},
        )


def _step(one: Event, story: Story, whole: Span, stages: Sequence[Span]) -> Span:
    ends = max(one.started_at, one.finished_at or whole.ends)
    within = [stage for stage in stages if stage.begins <= one.started_at < stage.ends]
    shown: dict[str, Any] = {
        "micronova.attempt": one.attempt,
        "micronova.host": one.host,
        "micronova.result": one.result or "unknown",
        "proxmox.upid": one.upid,
        **{f"micronova.{name}": value for name, value in one.detail.items() if name != "upids"},
    }
    return Span(
        whole.trace_id,
        span_id(story.operation.id, "step", one.attempt, one.name),
        within[-1].span_id if within else whole.span_id,
        one.name,
        one.started_at,
        ends,
        {name: _short(value) for name, value in shown.items() if value is not None},
        failure=f"{one.name} failed." if one.result == "Error" else None,
    )


def _tasks(one: Event, step: Span) -> Iterator[Span]:
    """Yield the tasks of Proxmox VE that a step waited for.

    A task's ID has the second of its begin, by the node's clock: it is shown within the step. The
    ledger doesn't have its end: that is the next one's begin, or the step's end.
    """
    upids = list(dict.fromkeys([*one.detail.get("upids", ()), *([one.upid] if one.upid else [])]))
    found = [match for upid in upids if (match := _UPID.fullmatch(str(upid)))]
    at = step.begins
    begins = []
    for match in found:
        sent_at = datetime.datetime.fromtimestamp(int(match[2], 16), datetime.UTC)
        at = min(max(sent_at, at), step.ends)
        begins.append(at)
    for number, match in enumerate(found):
        node, _, kind, subject = match.groups()
        yield Span(
            step.trace_id,
            span_id(match[0]),
            step.span_id,
            f"proxmox {kind}",
            begins[number],
            begins[number + 1] if number + 1 < len(found) else step.ends,
            {"proxmox.upid": match[0], "proxmox.node": node, "proxmox.subject": subject},
            remote=True,
        )


def _short(value: Any) -> Value:
    """Return a value that an attribute may have: a text, if it is no number."""
    if isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, default=str, sort_keys=True)
    return text[:_LONGEST]
