"""`/extensions` and `/resource_filters`: what the API can do, for clients that ask first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.volume.call import Call, operation
from api.volume.filters import FILTERS
from common.errors import NotFound

#: alias → (name, description, when it last changed): those of Cinder's that are true here
EXTENSIONS: Mapping[str, tuple[str, str, str]] = {
    "os-admin-actions": ("AdminActions", "Actions of administrators.", "2012-08-25"),
    "os-availability-zone": ("AvailabilityZones", "Availability zones.", "2013-06-27"),
    "backups": ("Backups", "Backups of volumes.", "2012-12-12"),
    "capabilities": ("Capabilities", "What a storage can do.", "2015-08-31"),
    "os-extended-services": ("ExtendedServices", "More of services.", "2014-01-10"),
    "os-extended-snapshot-attributes": (
        "ExtendedSnapshotAttributes",
        "More of snapshots.",
        "2012-06-19",
    ),
    "os-hosts": ("Hosts", "Hosts, for administrators.", "2011-06-29"),
    "os-quota-class-sets": ("QuotaClasses", "Default quotas.", "2012-03-12"),
    "os-quota-sets": ("Quotas", "Quotas of projects.", "2011-08-08"),
    "OS-SCH-HNT": ("SchedulerHints", "Hints where a volume should be.", "2013-04-18"),
    "scheduler-stats": ("Scheduler_stats", "Pools.", "2014-09-07"),
    "os-services": ("Services", "Services.", "2012-10-28"),
    "os-snapshot-actions": ("SnapshotActions", "Actions on snapshots.", "2013-07-16"),
    "os-types-extra-specs": ("TypesExtraSpecs", "Extra specs of types.", "2011-08-24"),
    "os-types-manage": ("TypesManage", "Changes of types.", "2011-08-24"),
    "os-used-limits": ("UsedLimits", "What of the limits is used.", "2013-10-03"),
    "os-volume-actions": ("VolumeActions", "Actions on volumes.", "2012-05-31"),
    "os-vol-host-attr": ("VolumeHostAttribute", "Where a volume is.", "2011-11-03"),
    "os-vol-image-meta": ("VolumeImageMetadata", "Image metadata of volumes.", "2012-12-07"),
    "os-vol-mig-status-attr": (
        "VolumeMigStatusAttribute",
        "Whether a volume moves.",
        "2013-08-08",
    ),
    "os-vol-tenant-attr": ("VolumeTenantAttribute", "Whose a volume is.", "2011-11-03"),
    "os-volume-transfer": ("VolumeTransfer", "Transfers to other projects.", "2013-05-29"),
    "os-volume-type-access": ("VolumeTypeAccess", "Who may use a type.", "2014-06-26"),
}


class Extensions:
    """Extensions and filters."""

    @operation("volume:get_all")
    def index(self, call: Call) -> Any:
        """List extensions."""
        return {"extensions": [_view(alias) for alias in EXTENSIONS]}

    @operation("volume:get_all")
    def show(self, call: Call, alias: str) -> Any:
        """Show an extension."""
        if alias not in EXTENSIONS:
            raise NotFound("The resource could not be found.")
        return {"extension": _view(alias)}

    @operation("volume:get_all", since="3.33")
    def filters(self, call: Call) -> Any:
        """List what lists can be filtered by: all, or that of a resource."""
        wanted = call.query.last("resource")
        return {
            "resource_filters": [
                {"resource": name, "filters": list(filters)}
                for name, filters in FILTERS.items()
                if not wanted or wanted == name
            ]
        }


def _view(alias: str) -> dict[str, Any]:
    name, description, updated = EXTENSIONS[alias]
    return {
        "name": name,
        "alias": alias,
        "description": description,
        "updated": f"{updated}T00:00:00+00:00",
        "links": [],
    }
