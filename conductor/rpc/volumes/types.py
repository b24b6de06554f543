"""Calls about types of volumes, which administrators change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from common.context import RequestContext


@dataclass(frozen=True)
class VolumeTypeEdit:
    """A volume type, or changes to one; None: unchanged."""

    name: str | None = None
    description: str | None = None
    is_public: bool | None = None
    extra_specs: dict[str, str] | None = None
    """These replace all others."""


class VolumeTypeRpc(Protocol):
    """Types of volumes, which administrators change."""

    def create_volume_type(self, ctxt: RequestContext, asked: VolumeTypeEdit) -> str:
        """Make a type of a storage; return its id. Raises Conflict (the name), Invalid."""

    def edit_volume_type(self, ctxt: RequestContext, type_id: str, asked: VolumeTypeEdit) -> None:
        """Change a type. Raises NotFound, Conflict (the name)."""

    def delete_volume_type(self, ctxt: RequestContext, type_id: str) -> None:
        """Delete a type. Raises NotFound, Invalid while volumes have it."""

    def allow_volume_type(
        self, ctxt: RequestContext, type_id: str, project_id: str, *, wanted: bool
    ) -> None:
        """Let a project use a type that isn't public, or no more.

        Raises NotFound, Conflict (it is allowed already, or the type is public).
        """

    def set_default_volume_type(
        self, ctxt: RequestContext, project_id: str, type_id: str | None
    ) -> None:
        """Set the type of a project's volumes for which none is named; None: the cloud's.

        Raises NotFound.
        """

    def update_volume_service(
        self, ctxt: RequestContext, service_uuid: str, *, disabled: bool, reason: str | None
    ) -> None:
        """Say whether new volumes may be on a service's host. Raises NotFound."""
