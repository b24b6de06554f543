"""Quotas of projects, under Neutron's names.

`openstack quota show` reads them whatever the list of extensions says, and with `--usage` and
`--default` the two further paths; so all three exist, and are listed as extensions.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NoReturn

import sqlalchemy as sa
from oslo_config import cfg

from api.network import bodies, values
from api.network.bodies import Input
from api.network.errors import QuotaNotFound
from api.plain import Call, operation
from common.errors import Invalid, NotSupported, Unimplemented
from common.resources.quotas import of_networks
from conductor.rpc import ConductorRpc
from db.reading import reading
from db.reads import quotas
from db.reads.networks import networks
from web.guard import Params, Reply

_LIMIT = values.integer(-1, 2**31 - 1)
_LONGEST = 255


def _whose(call: Call, params: Params) -> Mapping[str, Any]:
    """Return the target of the policy: the project that the path names, or none."""
    return {"project_id": params.get("project_id", "")}


class Limits:
    """The limits of projects, and of those without limits of their own."""

    def __init__(self, conf: cfg.ConfigOpts, engine: sa.Engine) -> None:
        self._conf, self._engine = conf, engine

    @functools.cached_property
    def defaults(self) -> dict[str, int]:
        """Limits of projects without limits of their own."""
        return of_networks(self._conf)

    def own(self, project_id: str) -> dict[str, int]:
        """Return the limits that were set for a project."""
        with reading(self._engine) as connection:
            found = quotas.own_limits(connection, self.defaults, project_id)
        return found.get(project_id, {})

    def of(self, project_id: str) -> dict[str, int]:
        """Return a project's limits; -1: none."""
        return {**self.defaults, **self.own(project_id)}

    def all(self) -> dict[str, dict[str, int]]:
        """Return the limits of each project that has some of its own."""
        with reading(self._engine) as connection:
            found = quotas.own_limits(connection, self.defaults)
        return {project_id: {**self.defaults, **own} for project_id, own in found.items()}

    def usage(self, project_id: str) -> dict[str, int]:
        """Return how many of each kind a project has."""
        with reading(self._engine) as connection:
            return networks.usage(connection, project_id)


class Quotas:
    """`/quotas`: projects with limits of their own."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    @operation("get_quota", on=_whose)
    def on_get(self, call: Call) -> Any:
        """List the projects that have limits of their own."""
        return {
            "quotas": [
                {**limits, "project_id": project_id, "tenant_id": project_id}
                for project_id, limits in sorted(self._limits.all().items())
            ]
        }

    @operation()
    def on_post(self, call: Call) -> NoReturn:
        """Refuse: limits are set by PUT for a project."""
        raise Unimplemented("POST requests are not supported on this resource.")


class OwnProject:
    """`/quotas/project` and `/quotas/tenant`: the project of the token."""

    def __init__(self, name: str) -> None:
        self._name = name

    @operation()
    def on_get(self, call: Call) -> Any:
        """Show the project of the token."""
        if not call.ctxt.project_id:
            raise Invalid("Tenant-id was missing from quota request.", type="QuotaMissingTenant")
        return {self._name: {f"{self._name}_id": call.ctxt.project_id}}


class Quota:
    """`/quotas/{project_id}`."""

    def __init__(self, limits: Limits, conductor: ConductorRpc | None) -> None:
        self._limits, self._conductor = limits, conductor

    @operation("get_quota", on=_whose)
    def on_get(self, call: Call, project_id: str) -> Any:
        """Show a project's limits."""
        return {"quota": self._limits.of(project_id)}

    @operation("update_quota", on=_whose)
    def on_put(self, call: Call, project_id: str) -> Any:
        """Set limits of a project: not below what it uses, unless `force` is true."""
        _require_project(project_id)
        asked = self._asked(call)
        force = asked.pop("force", None) is True
        asked.pop("check_limit", None)
        if asked:
            self._writer().set_quota(call.ctxt, project_id, asked, force=force)
        return {"quota": self._limits.of(project_id)}

    @operation("delete_quota", on=_whose, status=204)
    def on_delete(self, call: Call, project_id: str) -> Reply:
        """Reset a project's limits to the defaults."""
        _require_project(project_id)
        if not self._limits.own(project_id):
            raise QuotaNotFound(f"Quota for project {project_id} could not be found.")
        self._writer().reset_quota(call.ctxt, project_id, list(self._limits.defaults))
        return Reply()

    def _asked(self, call: Call) -> dict[str, Any]:
        inputs = {name: Input(_LIMIT) for name in self._limits.defaults}
        # Neutron takes these out of the body, whatever they are.
        flags = {name: Input(lambda value: value) for name in ("force", "check_limit")}
        return bodies.of_update(call.body(), "quota", {**inputs, **flags}, {*inputs, *flags})

    def _writer(self) -> ConductorRpc:
        if self._conductor is None:
            raise NotSupported("Quotas can't be changed through this API: it is read-only.")
        return self._conductor


def _require_project(project_id: str) -> None:
    if len(project_id) > _LONGEST or "\0" in project_id:
        raise Invalid(f"A project's ID has no more than {_LONGEST} characters.")


class QuotaDefaults:
    """`/quotas/{project_id}/default`."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    @operation("get_quota", on=_whose)
    def on_get(self, call: Call, project_id: str) -> Any:
        """Show the default limits."""
        return {"quota": self._limits.defaults}


class QuotaDetails:
    """`/quotas/{project_id}/details`."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    @operation("get_quota", on=_whose)
    def on_get(self, call: Call, project_id: str) -> Any:
        """Show a project's limits and usage."""
        used = self._limits.usage(project_id)
        details = {
            name: {"limit": limit, "used": used.get(name, 0), "reserved": 0}
            for name, limit in self._limits.of(project_id).items()
        }
        return {"quota": details}
