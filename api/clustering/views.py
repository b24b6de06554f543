"""Records in the API's form; fields are Senlin's."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from api.clustering.call import Call
from common.resources import webhooks
from common.resources.groups import GroupAction
from common.resources.states import TaskState
from db.reads.groups.actions import Action
from db.reads.groups.groups import Binding, Group, Member, Policy, Profile, Receiver
from db.reads.ledger.waiting import Waiting


def moment(value: datetime.datetime | None) -> str | None:
    """Return a time as Senlin writes it: UTC, in seconds."""
    return None if value is None else value.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _owned(one: Any) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "project": one.project_id,
        "user": one.user_id,
        "domain": None,
        "created_at": moment(one.created_at),
        "updated_at": moment(one.updated_at),
    }


def _of_nothing(call: Call, name: str) -> dict[str, Any]:
    """Return what a record has that was checked, and not made."""
    owner = {"project": call.project, "user": call.ctxt.user_id, "domain": None}
    return {"id": None, "name": name, **owner, "created_at": None, "updated_at": None}


def type_of(spec: Mapping[str, Any]) -> str:
    """Return the type of a spec with its version."""
    return f"{spec['type']}-{spec['version']}"


def profile(one: Profile) -> dict[str, Any]:
    """Return a profile."""
    return {**_owned(one), **_spec(one.spec), "metadata": one.meta, "location": None}


def valid_profile(call: Call, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a profile that could be made."""
    return {**_of_nothing(call, "validated_profile"), **_spec(spec), "metadata": None}


def policy(one: Policy) -> dict[str, Any]:
    """Return a policy."""
    return {**_owned(one), **_spec(one.spec), "data": {}}


def valid_policy(call: Call, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a policy that could be made."""
    return {**_of_nothing(call, "validated_policy"), **_spec(spec), "data": {}}


def _spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": type_of(spec), "spec": spec}


def cluster(
    one: Group, profile_name: str, nodes: Sequence[str], policies: Sequence[str]
) -> dict[str, Any]:
    """Return a group."""
    return {
        **_owned(one),
        "init_at": moment(one.created_at),
        "profile_id": one.profile_id,
        "profile_name": profile_name,
        "desired_capacity": one.desired,
        "min_size": one.min_size,
        "max_size": one.max_size,
        "timeout": one.timeout_seconds,
        "status": one.status,
        "status_reason": one.status_reason,
        "metadata": one.meta,
        "config": one.config,
        "data": {},
        "dependents": {},
        "nodes": list(nodes),
        "policies": list(policies),
    }


def health(one: Member) -> dict[str, Any] | None:
    """Return what the last change of a member's checks was; None: nothing was reported."""
    if one.health is None:
        return None
    return {
        "result": one.health,
        "reason": one.health_reason or "",
        "since": moment(one.health_at),
    }


def _data(one: Member) -> dict[str, Any]:
    """Return what a member has beyond Senlin's fields."""
    found: dict[str, Any] = {} if one.health is None else {"health": health(one)}
    return {**found, **kept(one)}


def kept(one: Member) -> dict[str, list[str]]:
    """Return what belongs to a member's place, by its kind."""
    return {kind.value: list(some) for kind, some in one.kept.items()}


def placed(members: Iterable[Member]) -> list[str]:
    """Return the servers of these members that are being given a host, or wait for room."""
    return [str(one.server_uuid) for one in members if one.task_state == TaskState.SCHEDULING]


def waits_for_room(one: Waiting) -> str:
    """Return as which of all, and for how long at most, a server waits."""
    return f"waits for room, place {one.place} of {one.of}, until {moment(one.until)} at most"


def reason(one: Member, waits: Mapping[str, Waiting]) -> str:
    """Return why a member is as it is."""
    found = waits.get(str(one.server_uuid))
    return one.reason if found is None else f"It {waits_for_room(found)}."


def node(
    call: Call,
    one: Member,
    profile_name: str,
    waits: Mapping[str, Waiting],
    details: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a member."""
    shown = {
        **_owned(one),
        "init_at": moment(one.created_at),
        "cluster_id": one.group_id or "",
        "index": -1 if one.member_index is None else one.member_index,
        "role": one.role,
        "profile_id": one.profile_id,
        "profile_name": profile_name,
        "physical_id": one.server_uuid or "",
        "status": one.status,
        "status_reason": reason(one, waits),
        "metadata": one.meta,
        "data": _data(one),
        "dependents": {},
        **call.since(13, tainted=False),
    }
    return shown if details is None else {**shown, "details": details}


def details(one: Member) -> dict[str, Any]:
    """Return what a member's server is."""
    if one.server_uuid is None:
        return {}
    return {
        "id": one.server_uuid,
        "name": one.name,
        "OS-EXT-STS:vm_state": one.vm_state,
        "OS-EXT-STS:task_state": one.task_state,
        "OS-EXT-AZ:availability_zone": one.availability_zone or "",
        "created": moment(one.server_created_at),
        "OS-SRV-USG:launched_at": moment(one.launched_at),
    }


def binding(one: Binding, group: Group) -> dict[str, Any]:
    """Return a policy of a group."""
    return {
        "id": one.id,
        "cluster_id": group.id,
        "cluster_name": group.name,
        "policy_id": one.policy_id,
        "policy_name": one.policy_name,
        "policy_type": type_of(one.spec),
        "enabled": one.enabled,
        "data": {},
    }


def receiver(call: Call, one: Receiver, secret: str | None = None) -> dict[str, Any]:
    """Return a webhook; its URL is complete for the token that made it only."""
    if secret is None and call.token:
        secret = webhooks.opened(one.id, one.sealed, call.token, one.key_hash)
    url = f"{call.root}/webhooks/{one.id}/trigger?V=2"
    shown = f"{url}&key={secret}" if secret is not None else f"{url}&key=(shown once)"
    return {
        **_owned(one),
        "type": "webhook",
        "cluster_id": one.group_id,
        "action": one.action,
        "params": one.params,
        "actor": {},
        "channel": {"alarm_url": shown},
    }


def action(call: Call, one: Action) -> dict[str, Any]:
    """Return an operation."""
    return {
        "id": str(one.id),
        "name": one.name,
        "action": one.action_name,
        "target": one.target,
        **call.since(14, cluster_id=one.cluster_id),
        "cause": "Derived Action" if one.action == GroupAction.KEEP else "RPC Request",
        "owner": one.lease_owner,
        "user": one.user_id,
        "project": one.project_id,
        "domain": None,
        "interval": -1,
        "timeout": 0 if one.deadline is None else int(_seconds(one.started_at, one.deadline)),
        "start_time": one.started_at.timestamp(),
        "end_time": None if one.finished_at is None else one.finished_at.timestamp(),
        "status": one.status,
        "status_reason": one.message or "",
        "inputs": {},
        "outputs": {},
        "data": {},
        "depends_on": [],
        "depended_by": [],
        "created_at": moment(one.started_at),
        "updated_at": moment(one.updated_at),
    }


def _seconds(since: datetime.datetime, until: datetime.datetime) -> float:
    return (until - since).total_seconds()


def event(one: Action) -> dict[str, Any]:
    """Return an operation as what has happened."""
    return {
        "id": str(one.id),
        "timestamp": moment(one.finished_at or one.started_at),
        "level": one.level,
        "oid": one.target,
        "oname": one.target_name,
        "otype": one.target_type,
        "cluster_id": one.cluster_id,
        "user": one.user_id,
        "project": one.project_id,
        "action": one.action_name,
        "status": one.status,
        "status_reason": one.message or "",
        "meta_data": {"request_id": one.request_id},
    }
