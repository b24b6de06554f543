"""The network that a project gets without naming one (Neutron's auto-allocated topology)."""

from __future__ import annotations

from typing import Any, NoReturn

import sqlalchemy as sa
from oslo_config import cfg

from api.network.errors import read_only
from api.plain import Call, operation
from common import networks as choice
from common.errors import Conflict
from db.reading import reading
from db.reads import networks
from web.policy import Enforcer

_NAME = "auto_allocated_topology"
#: what clients name where they mean their own project
_OWN = frozenset({"None", "null"})


class Topology:
    """`/auto-allocated-topology/{project_id}`."""

    def __init__(self, conf: cfg.ConfigOpts, engine: sa.Engine, policy: Enforcer) -> None:
        self._conf, self._engine, self._policy = conf, engine, policy

    @operation()
    def on_get(self, call: Call, project_id: str) -> Any:
        """Show the network, or, with `fields=dry-run`, whether there is one.

        Raises Conflict where there is none, or where several could be meant.
        """
        project_id = self._project(call, project_id)
        network_id = self._network(project_id)
        if ("fields", "dry-run") in call.pairs:
            return {_NAME: {"id": "dry-run=pass"}}
        return {_NAME: {"id": network_id, "tenant_id": project_id, "project_id": project_id}}

    @operation()
    def on_delete(self, call: Call, project_id: str) -> NoReturn:
        """Refuse it: it was not made for the project."""
        self._project(call, project_id)
        read_only(f"delete_{_NAME}")

    def _project(self, call: Call, project_id: str) -> str:
        asked = str(call.ctxt.project_id) if project_id in _OWN else project_id
        self._policy.check(call.ctxt, f"get_{_NAME}", {"project_id": asked, "tenant_id": asked})
        return asked

    def _network(self, project_id: str) -> str:
        with reading(self._engine) as connection:
            known = networks.unnamed(connection, project_id)
        try:
            found = choice.chosen(known, self._conf.networks.auto)
        except Conflict as error:
            raise _failure("there are several networks, and [networks] auto names none") from error
        if found is None:
            raise _failure("there is no network")
        return found.id


def _failure(why: str) -> Conflict:
    return Conflict(f"Deployment error: {why}.", type="AutoAllocationFailure")
