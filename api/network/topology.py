"""The network that a project gets without naming one (Neutron's auto-allocated topology)."""

from __future__ import annotations

from typing import Any

from api.plain import Call, operation
from conductor.rpc import ConductorRpc
from web.guard import Params, Reply, Target

_NAME = "auto_allocated_topology"
#: what clients name where they mean their own project
_OWN = frozenset({"None", "null"})


def _whose(call: Call, params: Params) -> Target:
    """Put the project that is meant in the place of what the path names."""
    if params["project_id"] in _OWN:
        params["project_id"] = str(call.ctxt.project_id)
    return {"project_id": params["project_id"], "tenant_id": params["project_id"]}


class Topology:
    """`/auto-allocated-topology/{project_id}`."""

    def __init__(self, conductor: ConductorRpc) -> None:
        self._conductor = conductor

    @operation("get_auto_allocated_topology", on=_whose)
    def on_get(self, call: Call, project_id: str) -> Any:
        """Show the network, which is made if need be; with `fields=dry-run` whether there can be.

        Raises Conflict where there can't, or where several could be meant.
        """
        dry_run = ("fields", "dry-run") in call.pairs
        network_id = self._conductor.auto_network(call.ctxt, project_id, dry_run=dry_run)
        if dry_run:
            return {_NAME: {"id": "dry-run=pass"}}
        return {_NAME: {"id": network_id, "tenant_id": project_id, "project_id": project_id}}

    @operation("delete_auto_allocated_topology", on=_whose, status=204)
    def on_delete(self, call: Call, project_id: str) -> Reply:
        """Delete the network, if it was made for the project."""
        self._conductor.delete_auto_network(call.ctxt, project_id)
        return Reply()
