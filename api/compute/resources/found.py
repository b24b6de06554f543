"""Look-ups of what paths name, before the policy is checked against the owner.

What belongs to another project isn't found, except by administrators.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from api.compute.call import Call
from common import ids
from common.errors import FlavorNotFound, Invalid, ServerNotFound
from db.reads.servers import flavors, servers
from db.reads.servers.flavors import Flavor
from db.reads.servers.servers import Extent


def the_server(call: Call, params: dict[str, str]) -> Mapping[str, Any]:
    """Find `server_id` and set `call.server`. Raises ServerNotFound."""
    return _find_server(call, params, deleted=False)


def the_shown_server(call: Call, params: dict[str, str]) -> Mapping[str, Any]:
    """Do the same, and read all that the server's view shows."""
    return _find_server(call, params, deleted=False, extent=Extent.HOST)


def the_server_even_deleted(call: Call, params: dict[str, str]) -> Mapping[str, Any]:
    """Do the same; since 2.21 find deleted servers too."""
    return _find_server(call, params, deleted=call.version >= 21)


def _find_server(
    call: Call, params: dict[str, str], *, deleted: bool, extent: Extent = Extent.RECORD
) -> Mapping[str, Any]:
    named = params.pop("server_id")
    if ids.is_uuid(named):
        call.found = call.read(
            servers.find, str(uuid.UUID(named)), call.reach, deleted=deleted, extent=extent
        )
    if call.found is None:
        raise ServerNotFound(f"Instance {named} could not be found.", server_uuid=named)
    return {"project_id": call.found.project_id, "user_id": call.found.user_id}


def must_be_a_project(call: Call, project_id: str) -> None:
    """Raise Invalid, in Nova's words, for a project that Keystone doesn't have.

    Keystone is asked for administrators only; a token proves that its own project exists.
    """
    projects = call.cloud.projects
    if projects is None or project_id == call.ctxt.project_id or not call.is_admin:
        return
    if projects.missing(project_id):
        raise Invalid(f"Project ID {project_id} is not a valid project.")


def a_flavor(call: Call, flavor_id: str) -> Flavor:
    """Return the flavor of this ID, if the project may use it. Raises FlavorNotFound."""
    project = call.reach
    flavor: Flavor | None = call.read(flavors.find, flavor_id, project)
    if flavor is None:
        raise FlavorNotFound(f"Flavor {flavor_id} could not be found.", flavor_id=flavor_id)
    return flavor
