"""`/hosts/{host}/tasks`: what a node's hypervisor does and did, for administrators; micronova's
own."""

from __future__ import annotations

import dataclasses
from typing import Any

from api.compute import policies
from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import operators as schemas
from common import clock
from common.messages.tasks import TaskFacts

MOST = 100


class HostTasks:
    """The tasks of a compute host's node."""

    @operation(policies.HOST_TASKS, query=schemas.HOST_TASKS)
    def index(self, call: Call, host: str) -> Any:
        """List the newest tasks of a node, those of all users, those that run first."""
        limit, _ = call.query.page(MOST)
        found = call.conductor.list_host_tasks(call.ctxt, host, limit)
        return {"tasks": [_view(one) for one in found]}


def _view(task: TaskFacts) -> dict[str, Any]:
    view = dataclasses.asdict(task)
    return view | {name: clock.iso(view[name]) for name in ("started_at", "finished_at")}
