"""Managing existing VMs: `POST /adoptions`, and further actions of a server.

These resources are micronova's own.
"""

from __future__ import annotations

from typing import Any

from oslo_utils import strutils

from api.compute import policies
from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import must_be_a_project, the_server
from api.compute.resources.servers.create import snapshot
from api.compute.schemas import manage as schemas
from common.errors import FlavorNotFound, Invalid
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.manage import Adoption
from db.reads.servers import flavors


class Adoptions:
    """Adoption of existing VMs."""

    @operation(policies.ADOPT, body=schemas.ADOPT, status=202, errors={FlavorNotFound: Invalid})
    def create(self, call: Call) -> Any:
        """Adopt an existing VM as a server, asynchronously."""
        asked = call.body["adoption"]
        project_id = asked["project_id"]
        must_be_a_project(call, project_id)
        adopted = call.conductor.adopt(
            call.ctxt,
            Adoption(
                cluster=asked["cluster"],
                vmid=int(asked["vmid"]),
                project_id=project_id,
                user_id=asked.get("user_id") or call.ctxt.user_id or "",
                name=asked.get("name"),
                flavor=_flavor(call, asked.get("flavor")),
            ),
        )
        return {"adoption": {"server_id": adopted.server_uuid}}


class ManageActions:
    """The actions on a server that Nova doesn't have."""

    @operation(policies.RELEASE, body=schemas.RELEASE, status=202, on=the_server)
    def release(self, call: Call) -> None:
        """Unmanage a server; the VM is not deleted, only its owner mark is removed."""
        call.conductor.act(call.ctxt, call.server.uuid, "release")

    @operation(policies.MARK, body=schemas.MARK, status=202, on=the_server)
    def mark(self, call: Call) -> None:
        """Restore the owner mark of the VM after it was edited."""
        call.conductor.mark_server(call.ctxt, call.server.uuid)

    @operation(policies.HOLD, body=schemas.HOLD, status=202, on=the_server)
    def hold(self, call: Call) -> None:
        """Hold a server: nothing that failed is retried."""
        call.conductor.hold_server(call.ctxt, call.server.uuid, held=True)

    @operation(policies.RELEASE_HOLD, body=schemas.RELEASE_HOLD, status=202, on=the_server)
    def release_hold(self, call: Call) -> None:
        """Release the hold; retries continue."""
        call.conductor.hold_server(call.ctxt, call.server.uuid, held=False)

    @operation(policies.RETRY, body=schemas.RETRY, status=202, on=the_server)
    def retry(self, call: Call) -> None:
        """Retry a waiting operation at once; check the VM of a server in ERROR."""
        call.conductor.retry_server(call.ctxt, call.server.uuid)

    @operation(policies.FORGET, body=schemas.FORGET, status=202, on=the_server)
    def forget(self, call: Call) -> None:
        """Abandon a server whose VM isn't ours, or whose cluster is gone for good."""
        asked = call.body["forget"] or {}
        force = strutils.bool_from_string(asked.get("force", False), strict=True)
        call.conductor.abandon(call.ctxt, call.server.uuid, asked.get("reason"), force=bool(force))


def _flavor(call: Call, named: str | None) -> FlavorSnapshot | None:
    """Return the flavor of this ID, public or not."""
    if named is None:
        return None
    found = call.read(flavors.find, named, None)
    if found is None:
        raise FlavorNotFound(f"Flavor {named} could not be found.", flavor_id=named)
    return snapshot(found)
