"""`/quotas/{project_id}`, micronova's own: how many groups a project may have, and has."""

from __future__ import annotations

from typing import Any

from api.clustering import schemas
from api.clustering.call import Call, operation
from common.resources import quotas
from common.resources.quotas import GROUPS
from db.reads import quotas as reads
from db.reads.groups import groups
from db.reads.volumes.block_storage import Filter
from web.guard import Params, Target


def _of_project(call: Call, params: Params) -> Target:
    return {"project_id": params["project_id"]}


class Quotas:
    """The limit of a project's groups."""

    @operation("quotas:show", on=_of_project)
    def show(self, call: Call, project_id: str) -> Any:
        """Show the limit (-1: none), and how many groups there are."""
        limits = call.read(reads.of_project, project_id).limits
        limit = limits.get(GROUPS, quotas.of_groups(call.cloud.conf)[GROUPS])
        used = call.read(groups.GROUPS.count, Filter(project_id))
        return {"quota": {"groups": {"limit": limit, "in_use": used}}}

    @operation("quotas:update", body=schemas.QUOTA)
    def update(self, call: Call, project_id: str) -> Any:
        """Set the limit."""
        limit = int(call.body["quota"]["groups"])
        call.conductor.set_quota(call.ctxt, project_id, {GROUPS: limit}, force=True)
        return self.show(call, project_id)

    @operation("quotas:delete", status=204)
    def delete(self, call: Call, project_id: str) -> None:
        """Reset the limit to the default."""
        call.conductor.reset_quota(call.ctxt, project_id, [GROUPS])
