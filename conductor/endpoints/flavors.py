"""The RPC endpoint of flavors."""

from __future__ import annotations

from common.context import RequestContext
from conductor.cloud import Cloud
from conductor.messages import NewFlavor
from conductor.store import catalog


class FlavorEndpoint:
    """See ``conductor.rpc_api.FlavorRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def create_flavor(self, ctxt: RequestContext, flavor: NewFlavor) -> str:
        """See ``ConductorClient.create_flavor``."""
        return self._cloud.store.run(lambda c: catalog.create_flavor(c, flavor))

    def update_flavor(self, ctxt: RequestContext, flavorid: str, description: str | None) -> None:
        """See ``ConductorClient.update_flavor``."""
        self._cloud.store.run(lambda c: catalog.update_flavor(c, flavorid, description))

    def delete_flavor(self, ctxt: RequestContext, flavorid: str) -> None:
        """See ``ConductorClient.delete_flavor``."""
        self._cloud.store.run(lambda c: catalog.delete_flavor(c, flavorid))

    def set_flavor_extra_specs(
        self, ctxt: RequestContext, flavorid: str, specs: dict[str, str], delete: list[str]
    ) -> None:
        """See ``ConductorClient.set_flavor_extra_specs``."""
        self._cloud.store.run(lambda c: catalog.set_extra_specs(c, flavorid, specs, delete))

    def set_flavor_access(
        self, ctxt: RequestContext, flavorid: str, project_id: str, allowed: bool
    ) -> None:
        """See ``ConductorClient.set_flavor_access``."""
        self._cloud.store.run(
            lambda c: catalog.set_access(c, flavorid, project_id, allowed=allowed)
        )
