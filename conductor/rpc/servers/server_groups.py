"""Calls about server groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from common.context import RequestContext


@dataclass(frozen=True)
class NewServerGroup:
    """A server group to be created; ``policy`` is a ``server_groups.Policy``."""

    project_id: str
    user_id: str
    name: str
    policy: str
    rules: Mapping[str, int] = field(default_factory=dict)


class ServerGroupRpc(Protocol):
    """Server groups."""

    def create_server_group(self, ctxt: RequestContext, group: NewServerGroup) -> str:
        """Return the UUID of a new group. Raises QuotaExceeded over ``server_groups``."""

    def delete_server_group(self, ctxt: RequestContext, group_uuid: str) -> None:
        """Delete a group; its servers stay. Raises NotFound, also for another project's."""
