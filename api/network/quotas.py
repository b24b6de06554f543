"""A project's limits: the same for all, and nobody's to change.

`openstack quota show` asks for them whatever the list of extensions says, and with `--usage` and
`--default` for the two further paths; so all three are there, and listed as extensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import falcon
import sqlalchemy as sa

from api.network.errors import QuotaNotFound, read_only
from common.errors import NotFound
from db.reading import reading
from db.reads import networks
from web.policy import Enforcer
from web.wsgi import context, send_json

LIMITS: Mapping[str, int] = {
    "network": 0,
    "subnet": 0,
    "subnetpool": 0,
    "port": -1,
    "router": 0,
    "floatingip": 0,
    "security_group": 0,
    "security_group_rule": 0,
    "rbac_policy": 0,
}
"""-1: no limit here (the servers of a project have one); 0: there are none to have."""


class Quotas:
    """`/quotas`: the projects with limits of their own."""

    def __init__(self, policy: Enforcer) -> None:
        self._policy = policy

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """None has any."""
        self._policy.check(context(req), "get_quota", {"project_id": ""})
        send_json(resp, {"quotas": []})


class Quota:
    """`/quotas/{project_id}`."""

    def __init__(self, policy: Enforcer) -> None:
        self._policy = policy

    def on_get(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        """The limits."""
        self._policy.check(context(req), "get_quota", {"project_id": project_id})
        send_json(resp, {"quota": {"project_id": project_id, **LIMITS}})

    def on_put(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> NoReturn:
        """Refused."""
        read_only("update_quota")

    def on_delete(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> NoReturn:
        """Not found, as Neutron says of a project whose limits are the default ones."""
        ctxt = context(req)
        if not self._policy.allows(ctxt, "admin_only", {}):
            read_only("delete_quota")
        raise QuotaNotFound(f"Quota for tenant {project_id} could not be found.")


class QuotaView:
    """`/quotas/{project_id}/default` and `…/details`."""

    def __init__(self, policy: Enforcer, engine: sa.Engine) -> None:
        self._policy = policy
        self._engine = engine

    def on_get(
        self, req: falcon.Request, resp: falcon.Response, project_id: str, what: str
    ) -> None:
        """The limits of projects without any of their own; or the limits with what is used."""
        self._policy.check(context(req), "get_quota", {"project_id": project_id})
        if what == "default":
            send_json(resp, {"quota": {"project_id": project_id, **LIMITS}})
        elif what in {"details", "details.json"}:
            send_json(resp, {"quota": self._details(project_id)})
        else:
            raise NotFound

    def _details(self, project_id: str) -> dict[str, dict[str, int]]:
        with reading(self._engine) as connection:
            used = {"port": networks.count_ports(connection, project_id)}
        return {
            name: {"limit": limit, "used": used.get(name, 0), "reserved": 0}
            for name, limit in LIMITS.items()
        }
