"""Calls about flavors."""

from __future__ import annotations

from collections.abc import Mapping

from common.context import RequestContext
from conductor.client.base import Base
from conductor.messages import NewFlavor
from conductor.rpc_api import FlavorRpc


class FlavorCalls(Base):
    """See ``conductor.rpc_api.FlavorRpc``."""

    def create_flavor(self, ctxt: RequestContext, flavor: NewFlavor) -> str:
        """Return the flavorid of a new flavor. Raises Conflict when name or id is taken."""
        return self._rpc.call(ctxt, FlavorRpc.create_flavor, flavor=flavor)

    def update_flavor(self, ctxt: RequestContext, flavorid: str, description: str | None) -> None:
        """Change the description. Raises FlavorNotFound."""
        self._rpc.call(ctxt, FlavorRpc.update_flavor, flavorid=flavorid, description=description)

    def delete_flavor(self, ctxt: RequestContext, flavorid: str) -> None:
        """Delete a flavor; servers made from it keep their copy. Raises FlavorNotFound."""
        self._rpc.call(ctxt, FlavorRpc.delete_flavor, flavorid=flavorid)

    def set_flavor_extra_specs(
        self,
        ctxt: RequestContext,
        flavorid: str,
        specs: Mapping[str, str],
        delete: tuple[str, ...] = (),
    ) -> None:
        """Merge the specs, drop the deleted keys. Raises FlavorNotFound."""
        self._rpc.call(
            ctxt,
            FlavorRpc.set_flavor_extra_specs,
            flavorid=flavorid,
            specs=dict(specs),
            delete=list(delete),
        )

    def set_flavor_access(
        self, ctxt: RequestContext, flavorid: str, project_id: str, *, allowed: bool
    ) -> None:
        """Grant a project access to a private flavor, or revoke it.

        Raises FlavorNotFound; Conflict if it has access already; NotFound if it has none.
        """
        self._rpc.call(
            ctxt,
            FlavorRpc.set_flavor_access,
            flavorid=flavorid,
            project_id=project_id,
            allowed=allowed,
        )
