"""Flavors to name to the owner of a server that no host can take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from common.resources.local_disks import claim_gib
from db.schema import flavor_access, flavors

#: flavors that are considered if none of a larger size would do
_OFFERED = 100


@dataclass(frozen=True)
class Offer:
    """A flavor that the server's project may use; sizes in MiB and GiB."""

    name: str
    vcpus: int
    memory_mib: int
    disk_gib: int
    extra_specs: Mapping[str, str]
    ephemeral_gib: int = 0
    swap_mib: int = 0

    @property
    def local_gib(self) -> int:
        """Return what its disks beside the root disk claim."""
        return claim_gib(self.ephemeral_gib, self.swap_mib)


@dataclass(frozen=True)
class Limits:
    """Limits of flavors that are worth a try: smaller in what was too large."""

    vcpus: int | None
    """None: any number."""
    memory_mib: int | None
    disk_gib: int | None
    least_memory_mib: int
    """The image's minimum disk and memory."""
    least_disk_gib: int

    def allow(self, offer: Offer) -> bool:
        """Return whether a flavor is within; a disk of 0 is as large as the image."""
        disk = offer.disk_gib or self.least_disk_gib
        return (
            (self.vcpus is None or offer.vcpus <= self.vcpus)
            and (self.memory_mib is None or offer.memory_mib <= self.memory_mib)
            and (self.disk_gib is None or disk + offer.local_gib <= self.disk_gib)
            and self.least_memory_mib <= offer.memory_mib
            and self.least_disk_gib <= disk
        )


def offers(connection: sa.Connection, project_id: str, within: Limits) -> list[Offer]:
    """Return flavors that a project may use and that may be within limits, the largest first.

    Only flavors that are visible to the project.
    """
    granted = sa.select(1).where(
        flavor_access.c.flavor_id == flavors.c.id, flavor_access.c.project_id == project_id
    )
    columns = flavors.c
    query = sa.select(
        columns.name,
        columns.vcpus,
        columns.memory_mib,
        columns.disk_gib,
        columns.extra_specs,
        columns.ephemeral_gib,
        columns.swap_mib,
    ).where(
        columns.disabled.is_(False),
        sa.or_(columns.is_public.is_(True), sa.exists(granted)),
        columns.memory_mib >= within.least_memory_mib,
    )
    for column, most in (
        (columns.vcpus, within.vcpus),
        (columns.memory_mib, within.memory_mib),
        (columns.disk_gib, within.disk_gib),
    ):
        if most is not None:
            query = query.where(column <= most)
    rows = connection.execute(query.order_by(columns.memory_mib.desc()).limit(_OFFERED))
    return [Offer(*row) for row in rows]
