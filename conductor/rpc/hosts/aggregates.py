"""Calls about host aggregates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from common.context import RequestContext


class AggregateRpc(Protocol):
    """Host aggregates."""

    def create_aggregate(self, ctxt: RequestContext, name: str, zone: str | None) -> int:
        """Return the id of a new aggregate. Raises Conflict when the name is taken."""

    def update_aggregate(
        self,
        ctxt: RequestContext,
        number: int,
        *,
        name: str | None = None,
        metadata: Mapping[str, str | None] | None = None,
    ) -> None:
        """Rename; change metadata. Raises as ``set_aggregate_metadata``; Conflict (the name)."""

    def set_aggregate_metadata(
        self, ctxt: RequestContext, number: int, metadata: Mapping[str, str | None]
    ) -> None:
        """Merge metadata; None drops a key. Raises NotFound; Invalid for an impossible zone."""

    def delete_aggregate(self, ctxt: RequestContext, number: int) -> None:
        """Delete an aggregate. Raises NotFound; Invalid while it has hosts."""

    def add_aggregate_host(self, ctxt: RequestContext, number: int, host: str) -> None:
        """Add a host.

        Raises NotFound, HostNotFound; Conflict for a host that can't be a member, or is one.
        """

    def remove_aggregate_host(self, ctxt: RequestContext, number: int, host: str) -> None:
        """Remove a host.

        Raises NotFound, HostNotFound; Conflict where servers would change their zone.
        """

    def cache_images(self, ctxt: RequestContext, number: int, image_ids: Sequence[str]) -> None:
        """Begin to make images ready on all hosts of an aggregate that are up.

        Raises NotFound; Invalid, with nothing begun, for an image that a host can't have ready.
        """
