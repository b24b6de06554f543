"""Calls about host aggregates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from common.context import RequestContext
from conductor.client.base import Base
from conductor.rpc_api import AggregateRpc


class AggregateCalls(Base):
    """See ``conductor.rpc_api.AggregateRpc``."""

    def create_aggregate(self, ctxt: RequestContext, name: str, zone: str | None) -> int:
        """Return the id of a new aggregate. Raises Conflict when the name is taken."""
        return self._rpc.call(ctxt, AggregateRpc.create_aggregate, name=name, zone=zone)

    def update_aggregate(
        self,
        ctxt: RequestContext,
        number: int,
        *,
        name: str | None = None,
        metadata: Mapping[str, str | None] = MappingProxyType({}),
    ) -> None:
        """Rename; change metadata. Raises as ``set_aggregate_metadata``; Conflict (the name)."""
        self._rpc.call(
            ctxt, AggregateRpc.update_aggregate, number=number, name=name, metadata=dict(metadata)
        )

    def set_aggregate_metadata(
        self, ctxt: RequestContext, number: int, metadata: Mapping[str, str | None]
    ) -> None:
        """Merge metadata; None drops a key. Raises NotFound; Invalid for an impossible zone."""
        self._rpc.call(
            ctxt, AggregateRpc.set_aggregate_metadata, number=number, metadata=dict(metadata)
        )

    def delete_aggregate(self, ctxt: RequestContext, number: int) -> None:
        """Delete an aggregate. Raises NotFound; Invalid while it has hosts."""
        self._rpc.call(ctxt, AggregateRpc.delete_aggregate, number=number)

    def add_aggregate_host(self, ctxt: RequestContext, number: int, host: str) -> None:
        """Add a host.

        Raises NotFound, HostNotFound; Conflict for a host that can't be in it, or is.
        """
        self._rpc.call(ctxt, AggregateRpc.add_aggregate_host, number=number, host=host)

    def remove_aggregate_host(self, ctxt: RequestContext, number: int, host: str) -> None:
        """Remove a host.

        Raises NotFound, HostNotFound; Conflict where servers would change their zone.
        """
        self._rpc.call(ctxt, AggregateRpc.remove_aggregate_host, number=number, host=host)

    def cache_images(self, ctxt: RequestContext, number: int, image_ids: Sequence[str]) -> None:
        """Begin to make images ready on all hosts of an aggregate that are up.

        Raises NotFound; Invalid, with nothing begun, for an image that a host can't have ready.
        """
        self._rpc.call(ctxt, AggregateRpc.cache_images, number=number, image_ids=list(image_ids))
