"""`/extensions` and `/resource_filters`: what the API has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.volume.call import Call, operation
from api.volume.filters import FILTERS
from common.errors import NotFound

# Horizon offers zones only where it finds `AvailabilityZones`.
# (alias, name, what it adds, when Cinder's last changed); only what is served here
_ROWS = (
    ("os-admin-actions", "AdminActions", "Actions of administrators.", "2012-08-25"),
    ("os-availability-zone", "AvailabilityZones", "Availability zones.", "2013-06-27"),
    ("capabilities", "Capabilities", "What storages can do.", "2015-08-31"),
    ("os-extended-services", "ExtendedServices", "Details of services.", "2014-01-10"),
    (
        "os-extended-snapshot-attributes",
        "ExtendedSnapshotAttributes",
        "Details of snapshots.",
        "2012-06-19",
    ),
    ("os-hosts", "Hosts", "Hosts.", "2011-06-29"),
    ("os-quota-class-sets", "QuotaClasses", "Quotas of classes.", "2012-03-12"),
    ("os-quota-sets", "Quotas", "Quotas.", "2011-08-08"),
    ("OS-SCH-HNT", "SchedulerHints", "Scheduler hints.", "2013-04-18"),
    ("scheduler-stats", "Scheduler_stats", "Pools.", "2014-09-07"),
    ("os-services", "Services", "Services.", "2012-10-28"),
    ("os-types-extra-specs", "TypesExtraSpecs", "Extra specs of types.", "2011-08-24"),
    ("os-types-manage", "TypesManage", "Changes of types.", "2011-08-24"),
    ("os-used-limits", "UsedLimits", "What is used of limits.", "2013-10-03"),
    ("os-volume-actions", "VolumeActions", "Actions of volumes.", "2012-05-31"),
    ("os-vol-host-attr", "VolumeHostAttribute", "Hosts of volumes.", "2011-11-03"),
    ("os-vol-image-meta", "VolumeImageMetadata", "Image metadata of volumes.", "2012-12-07"),
    (
        "os-vol-mig-status-attr",
        "VolumeMigStatusAttribute",
        "Migrations of volumes.",
        "2013-08-08",
    ),
    ("os-vol-tenant-attr", "VolumeTenantAttribute", "Projects of volumes.", "2011-11-03"),
    ("os-volume-type-access", "VolumeTypeAccess", "Types of some projects.", "2014-06-26"),
)
EXTENSIONS: Mapping[str, Mapping[str, Any]] = {
    alias: {
        "alias": alias,
        "name": name,
        "description": text,
        "updated": f"{date}T00:00:00+00:00",
        "links": [],
    }
    for alias, name, text, date in _ROWS
}


class Extensions:
    """What the API has."""

    @operation("volume:get_all")
    def index(self, call: Call) -> Any:
        """List extensions."""
        return {"extensions": list(EXTENSIONS.values())}

    @operation("volume:get_all")
    def show(self, call: Call, record_id: str) -> Any:
        """Show an extension."""
        if record_id not in EXTENSIONS:
            raise NotFound
        return {"extension": EXTENSIONS[record_id]}

    @operation("volume:get_all", since="3.33")
    def filters(self, call: Call) -> Any:
        """List what lists can be filtered by: all of them, or that of one ``resource``."""
        wanted = call.query.last("resource")
        shown = [
            {"resource": name, "filters": list(names)}
            for name, names in FILTERS.items()
            if not wanted or wanted == name
        ]
        return {"resource_filters": shown}


EXTENSIONS_API = Extensions()
