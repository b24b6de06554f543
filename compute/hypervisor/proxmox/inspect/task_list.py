"""The tasks of a node, those of all users."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from common.messages.tasks import TaskFacts
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.api.tasks import is_running


def read(client: Client, node: str, limit: int) -> list[TaskFacts]:
    """Return the newest tasks, those that run first. Raises HypervisorError."""
    listed = client.get(f"nodes/{node}/tasks", source="all", limit=limit)
    found = [_facts(one) for one in listed]
    found.sort(key=lambda one: (one.finished_at is None, one.started_at), reverse=True)
    return found[:limit]


def _facts(task: Mapping[str, Any]) -> TaskFacts:
    runs = is_running(task)
    token = f"!{task['tokenid']}" if task.get("tokenid") else ""
    ended = task.get("endtime")
    return TaskFacts(
        id=str(task["upid"]),
        kind=str(task.get("type", "")),
        subject=str(task.get("id") or ""),
        user=f"{task.get('user', '')}{token}",
        started_at=_moment(task["starttime"]),
        finished_at=None if runs or ended is None else _moment(ended),
        result=None if runs else str(task.get("status") or "unknown"),
    )


def _moment(seconds: Any) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)
