"""Calls about flavors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from common import codec
from common.context import RequestContext
from common.resources import local_disks
from common.resources.local_disks import LocalDisk


@dataclass(frozen=True)
class FlavorSnapshot:
    """A flavor as it is when a server is created from it; sizes in MiB and GiB."""

    id: str
    """The flavorid that users see."""
    name: str
    vcpus: int
    memory_mib: int
    disk_gib: int
    ephemeral_gib: int = 0
    swap_mib: int = 0
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    volume_backed: bool = False
    """Whether its server boots from a volume, and has no root disk of this size."""
    local_disks: tuple[LocalDisk, ...] = ()
    """The server's disks other than the root disk."""

    @property
    def local_gib(self) -> int:
        """Return what the disks other than the root disk claim."""
        if not self.local_disks:
            return 0
        return local_disks.claim_gib(self.ephemeral_gib, self.swap_mib)


def local_disks_of(flavor: Mapping[str, Any]) -> tuple[LocalDisk, ...]:
    """Return a server's disks other than the root disk, by its ``FlavorSnapshot``."""
    return tuple(codec.load(LocalDisk, one) for one in flavor.get("local_disks") or ())


def claimed_gib(flavor: Mapping[str, Any]) -> int:
    """Return the disk that a server claims by its ``FlavorSnapshot``, as Nova counts it."""
    return root_gib(flavor) + _local_gib(flavor)


def _local_gib(flavor: Mapping[str, Any]) -> int:
    # A server that was made without such disks, or adopted, doesn't claim them.
    if not flavor.get("local_disks"):
        return 0
    sizes = int(flavor.get("ephemeral_gib") or 0), int(flavor.get("swap_mib") or 0)
    return local_disks.claim_gib(*sizes)


def root_gib(flavor: Mapping[str, Any]) -> int:
    """Return the size of a server's own root disk by its ``FlavorSnapshot``; a volume is none."""
    return 0 if flavor.get("volume_backed") else int(flavor["disk_gib"])


@dataclass(frozen=True)
class NewFlavor:
    """A flavor to be created; ``flavorid`` None: the conductor makes a UUID."""

    name: str
    vcpus: int
    memory_mib: int
    disk_gib: int
    flavorid: str | None = None
    ephemeral_gib: int = 0
    swap_mib: int = 0
    rxtx_factor: float = 1.0
    is_public: bool = True
    description: str | None = None


class FlavorRpc(Protocol):
    """Flavors."""

    def create_flavor(self, ctxt: RequestContext, flavor: NewFlavor) -> str:
        """Return the flavorid of a new flavor. Raises Conflict when name or id is taken."""

    def update_flavor(self, ctxt: RequestContext, flavorid: str, description: str | None) -> None:
        """Change the description. Raises FlavorNotFound."""

    def delete_flavor(self, ctxt: RequestContext, flavorid: str) -> None:
        """Delete a flavor; servers made from it keep their copy. Raises FlavorNotFound."""

    def set_flavor_extra_specs(
        self,
        ctxt: RequestContext,
        flavorid: str,
        specs: Mapping[str, str],
        delete: Sequence[str] = (),
    ) -> None:
        """Merge the specs, drop the deleted keys. Raises FlavorNotFound."""

    def set_flavor_access(
        self, ctxt: RequestContext, flavorid: str, project_id: str, *, allowed: bool
    ) -> None:
        """Grant a project access to a private flavor, or revoke it.

        Raises FlavorNotFound; Conflict if it has access already; NotFound if it has none.
        """
