"""`/flavors/{id}/os-flavor-access`: the projects that may use a private flavor."""

from __future__ import annotations

from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import a_flavor, must_be_a_project
from api.compute.schemas import flavors as schemas
from common.errors import Conflict, NotFound
from db.reads.servers import flavors
from db.reads.servers.flavors import Flavor


class FlavorAccess:
    """Access to a private flavor."""

    @operation("os-flavor-access")
    def index(self, call: Call, flavor_id: str) -> Any:
        """List the projects with access; 404 for a public flavor."""
        flavor = a_flavor(call, flavor_id)
        if flavor.is_public:
            raise NotFound("Access list not available for public flavors.")
        return _view(call, flavor)

    @operation("os-flavor-access:add_tenant_access", body=schemas.ADD_ACCESS)
    def add(self, call: Call, flavor_id: str) -> Any:
        """Grant a project access."""
        must_be_a_project(call, call.body["addTenantAccess"]["tenant"])
        flavor = a_flavor(call, flavor_id)
        if flavor.is_public and call.version >= 7:
            raise Conflict("Can not add access to a public flavor.")
        project = call.body["addTenantAccess"]["tenant"]
        call.conductor.set_flavor_access(call.ctxt, flavor_id, project, allowed=True)
        return _view(call, flavor)

    @operation("os-flavor-access:remove_tenant_access", body=schemas.REMOVE_ACCESS)
    def remove(self, call: Call, flavor_id: str) -> Any:
        """Revoke a project's access."""
        flavor = a_flavor(call, flavor_id)
        project = call.body["removeTenantAccess"]["tenant"]
        call.conductor.set_flavor_access(call.ctxt, flavor_id, project, allowed=False)
        return _view(call, flavor)


def _view(call: Call, flavor: Flavor) -> dict[str, Any]:
    projects = call.read(flavors.projects_of, flavor.id)
    return {
        "flavor_access": [
            {"flavor_id": flavor.flavorid, "tenant_id": project} for project in projects
        ]
    }
