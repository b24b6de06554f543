"""`/os-quota-sets`, `/os-quota-class-sets` and `/limits`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.volume import schemas
from api.volume.call import Call, operation
from common import quotas as options
from common.errors import Invalid
from common.quotas import DEFAULT_CLASS, OF_VOLUMES
from db.reads import quotas, volumes
from web.guard import Params

_KINDS = ("volumes", "snapshots", "gigabytes")


def _whose(_: Call, params: Params) -> Mapping[str, Any]:
    return {"project_id": params["project_id"]}


def _names(call: Call) -> list[str]:
    """Return the resources that there are: also those of each type."""
    types = call.read(volumes.types, None)
    return [*OF_VOLUMES, *(f"{kind}_{one.name}" for one in types for kind in _KINDS)]


def _defaults(call: Call) -> dict[str, int]:
    conf = call.cloud.conf.quota
    return {name: conf[name] if name in OF_VOLUMES else options.UNLIMITED for name in _names(call)}


def _limits(call: Call, project_id: str) -> dict[str, int]:
    own = call.read(quotas.of_project, project_id).limits
    return {name: own.get(name, limit) for name, limit in _defaults(call).items()}


class QuotaSets:
    """Quotas of projects."""

    @operation("volume_extension:quotas:show", on=_whose)
    def show(self, call: Call, project_id: str) -> Any:
        """Show a project's limits, with what it uses if that is asked for."""
        limits = _limits(call, project_id)
        if not call.query.boolean("usage"):
            return {"quota_set": {"id": project_id, **limits}}
        used = call.read(volumes.usage, project_id)
        shown = {
            name: {"limit": limit, "in_use": used.get(name, 0), "reserved": 0}
            for name, limit in limits.items()
        }
        return {"quota_set": {"id": project_id, **shown}}

    @operation("volume_extension:quotas:show", on=_whose)
    def defaults(self, call: Call, project_id: str) -> Any:
        """Show the limits of projects without limits of their own."""
        own = call.read(quotas.of_class, DEFAULT_CLASS)
        limits = {name: own.get(name, limit) for name, limit in _defaults(call).items()}
        return {"quota_set": {"id": project_id, **limits}}

    @operation("volume_extension:quotas:update", body=schemas.QUOTA)
    def update(self, call: Call, project_id: str) -> Any:
        """Set limits."""
        asked = _asked(call)
        force = not call.query.boolean("skip_validation", default=True)
        used = call.read(volumes.usage, project_id) if force else {}
        for name, limit in asked.items():
            if 0 <= limit < used.get(name, 0):
                raise Invalid(
                    f"Quota limit {limit} for {name} must be equal or greater than in-use and "
                    f"reserved: {used[name]}."
                )
        call.conductor.set_quota(call.ctxt, project_id, asked, force=True)
        return {"quota_set": _limits(call, project_id)}

    @operation("volume_extension:quotas:update")
    def delete(self, call: Call, project_id: str) -> None:
        """Set all limits back to the defaults."""
        limits = _defaults(call)
        call.conductor.set_quota(call.ctxt, project_id, limits, force=True)

    @operation("volume_extension:quotas:show")
    def show_class(self, call: Call, class_name: str) -> Any:
        """Show the limits of a class, which are the defaults of all projects."""
        own = call.read(quotas.of_class, class_name)
        limits = {name: own.get(name, limit) for name, limit in _defaults(call).items()}
        return {"quota_class_set": {"id": class_name, **limits}}


def _asked(call: Call) -> dict[str, int]:
    """Return the limits that are set. Raises Invalid for resources that there are not."""
    known, found = set(_names(call)), {}
    for name, value in call.body["quota_set"].items():
        if name in ("tenant_id", "force"):
            continue
        if name not in known:
            raise Invalid(f"Bad key(s) in quota set: {name[:255]}")
        found[name] = int(value)
    return found


class Limits:
    """`/limits`."""

    @operation("volume:get_all")
    def show(self, call: Call) -> Any:
        """Show what the project may have, and has."""
        limits = _limits(call, call.project)
        used = call.read(volumes.usage, call.project)
        absolute = {
            "maxTotalVolumes": limits["volumes"],
            "maxTotalSnapshots": limits["snapshots"],
            "maxTotalVolumeGigabytes": limits["gigabytes"],
            "maxTotalBackups": limits["backups"],
            "maxTotalBackupGigabytes": limits["backup_gigabytes"],
            "totalVolumesUsed": used["volumes"],
            "totalSnapshotsUsed": used.get("snapshots", 0),
            "totalGigabytesUsed": used["gigabytes"],
            "totalBackupsUsed": used["backups"],
            "totalBackupGigabytesUsed": used["backup_gigabytes"],
        }
        return {"limits": {"rate": [], "absolute": absolute}}


QUOTA_SETS, LIMITS = QuotaSets(), Limits()
