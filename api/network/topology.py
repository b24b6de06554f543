"""The network that a project gets without naming one (Neutron's auto-allocated topology)."""

from __future__ import annotations

from typing import Any

from api.plain import Call, operation
from conductor.rpc import ConductorRpc
from web.guard import Reply
from web.policy import Enforcer

_NAME = "auto_allocated_topology"
#: what clients name where they mean their own project
_OWN = frozenset({"None", "null"})


class Topology:
    """`/auto-allocated-topology/{project_id}`."""

    def __init__(self, policy: Enforcer, conductor: ConductorRpc) -> None:
        self._policy, self._conductor = policy, conductor

    @operation()
    def on_get(self, call: Call, project_id: str) -> Any:
        """Show the network, which is made if need be; with `fields=dry-run` whether there can be.

        Raises Conflict where there can't, or where several could be meant.
        """
        project_id = self._project(call, "get", project_id)
        dry_run = ("fields", "dry-run") in call.pairs
        network_id = self._conductor.auto_network(call.ctxt, project_id, dry_run=dry_run)
        if dry_run:
            return {_NAME: {"id": "dry-run=pass"}}
        return {_NAME: {"id": network_id, "tenant_id": project_id, "project_id": project_id}}

    @operation(status=204)
    def on_delete(self, call: Call, project_id: str) -> Reply:
        """Delete the network, if it was made for the project."""
        project_id = self._project(call, "delete", project_id)
        self._conductor.delete_auto_network(call.ctxt, project_id)
        return Reply()

    def _project(self, call: Call, verb: str, project_id: str) -> str:
        asked = str(call.ctxt.project_id) if project_id in _OWN else project_id
        target = {"project_id": asked, "tenant_id": asked}
        self._policy.check(call.ctxt, f"{verb}_{_NAME}", target)
        return asked
