"""Quotas: the same for all projects, and read-only.

`openstack quota show` reads them whatever the list of extensions says, and with `--usage` and
`--default` the two further paths; so all three exist, and are listed as extensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import sqlalchemy as sa
from oslo_config import cfg

from api.network.errors import QuotaNotFound, read_only
from api.plain import Call, operation
from common.errors import NotFound
from common.quotas import OF_NETWORKS
from db.reading import reading
from db.reads import networks
from web.guard import Params
from web.policy import Enforcer

LIMITS: Mapping[str, int] = {
    "subnetpool": 0,
    "router": 0,
    "floatingip": 0,
}
"""0: not available."""


def limits(conf: cfg.ConfigOpts) -> dict[str, int]:
    """Return the limits of every project; -1: none."""
    own = {name: conf.quota[option] for option, (name, *_) in OF_NETWORKS.items()}
    return {**LIMITS, **own, "port": conf.quota.ports}


def _whose(call: Call, params: Params) -> Mapping[str, Any]:
    """Return the target of the policy: the project that the path names, or none."""
    return {"project_id": params.get("project_id", "")}


class Quotas:
    """`/quotas`: projects with limits of their own."""

    @operation("get_quota", on=_whose)
    def on_get(self, call: Call) -> Any:
        """List none: all projects have the default limits."""
        return {"quotas": []}


class Quota:
    """`/quotas/{project_id}`."""

    def __init__(self, conf: cfg.ConfigOpts, policy: Enforcer) -> None:
        self._conf, self._policy = conf, policy

    @operation("get_quota", on=_whose)
    def on_get(self, call: Call, project_id: str) -> Any:
        """Show a project's limits."""
        return {"quota": limits(self._conf)}

    @operation()
    def on_put(self, call: Call, project_id: str) -> NoReturn:
        """Refuse a change."""
        read_only("update_quota")

    @operation()
    def on_delete(self, call: Call, project_id: str) -> NoReturn:
        """Answer 404, as Neutron does for a project with default limits."""
        ctxt = call.ctxt
        if not self._policy.allows(ctxt, "admin_only", {}):
            read_only("delete_quota")
        raise QuotaNotFound(f"Quota for tenant {project_id} could not be found.")


class QuotaView:
    """`/quotas/{project_id}/default` and `…/details`."""

    def __init__(self, conf: cfg.ConfigOpts, engine: sa.Engine) -> None:
        self._conf, self._engine = conf, engine

    @operation("get_quota", on=_whose)
    def on_get(self, call: Call, project_id: str, what: str) -> Any:
        """Show the default limits, or a project's limits and usage."""
        if what == "default":
            return {"quota": limits(self._conf)}
        if what in {"details", "details.json"}:
            return {"quota": self._details(project_id)}
        raise NotFound

    def _details(self, project_id: str) -> dict[str, dict[str, int]]:
        with reading(self._engine) as connection:
            used = networks.usage(connection, project_id)
        return {
            name: {"limit": limit, "used": used.get(name, 0), "reserved": 0}
            for name, limit in limits(self._conf).items()
        }
