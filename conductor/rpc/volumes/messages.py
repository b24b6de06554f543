"""Calls about messages about volumes."""

from __future__ import annotations

from typing import Protocol

from common.context import RequestContext


class VolumeMessageRpc(Protocol):
    """Messages about volumes."""

    def delete_volume_message(self, ctxt: RequestContext, operation_id: int) -> None:
        """Hide the message of a failed operation."""
