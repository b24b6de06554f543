"""`/os-quota-sets`, `/os-quota-class-sets` and `/limits`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.volume import schemas
from api.volume.call import Call, operation
from common.errors import Invalid
from common.resources import quotas as options
from common.resources.quotas import DEFAULT_CLASS, OF_TYPES, OF_VOLUMES
from db.reads import quotas
from db.reads.volumes import volume_usage, volumes
from web.guard import Params

_LONGEST = 255
_OTHERS_SINCE = 39


def _whose(_: Call, params: Params) -> Mapping[str, Any]:
    return {"project_id": params["project_id"]}


def _names(call: Call) -> list[str]:
    """Return the resources that there are: also those of each type."""
    types = call.read(volumes.types, None)
    return [*OF_VOLUMES, *(f"{kind}_{one.name}" for one in types for kind in OF_TYPES)]


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
        used = call.read(volume_usage.usage, project_id)
        shown = {
            name: {"limit": limit, "in_use": used.get(name, 0), "reserved": 0}
            for name, limit in limits.items()
        }
        return {"quota_set": {"id": project_id, **shown}}

    @operation("volume_extension:quotas:show", on=_whose)
    def defaults(self, call: Call, project_id: str) -> Any:
        """Show the limits of projects without limits of their own."""
        return {"quota_set": {"id": project_id, **_of_class(call, DEFAULT_CLASS)}}

    @operation("volume_extension:quotas:update", body=schemas.QUOTA)
    def update(self, call: Call, project_id: str) -> Any:
        """Set limits, none less than the project has, as Cinder asks since Queens."""
        _require_length("quota_set_name", project_id)
        asked, used = _asked(call), call.read(volume_usage.usage, project_id)
        for name, limit in asked.items():
            if 0 <= limit < used.get(name, 0):
                raise Invalid(
                    f"Quota {name} limit must be equal or greater than existing resources. "
                    f"Current usage is {used[name]} and the requested limit is {limit}."
                )
        call.conductor.set_quota(call.ctxt, project_id, asked, force=True)
        return {"quota_set": _limits(call, project_id)}

    @operation("volume_extension:quotas:update")
    def delete(self, call: Call, project_id: str) -> None:
        """Set all limits back to the defaults."""
        call.conductor.reset_quota(call.ctxt, project_id, _names(call))

    @operation("volume_extension:quota_classes:update", body=schemas.QUOTA_CLASS)
    def update_class(self, call: Call, class_name: str) -> Any:
        """Set limits of a class; those of ``default`` are all projects' defaults."""
        _require_length("quota_class_name", class_name)
        asked = _asked(call, "quota_class_set")
        call.conductor.set_quota_class(call.ctxt, class_name, asked)
        return {"quota_class_set": _of_class(call, class_name)}

    @operation("volume_extension:quota_classes:get")
    def show_class(self, call: Call, class_name: str) -> Any:
        """Show the limits of a class, which are the defaults of all projects."""
        return {"quota_class_set": {"id": class_name, **_of_class(call, class_name)}}


def _require_length(what: str, name: str) -> None:
    if len(name) > _LONGEST:
        raise Invalid(f"{what} has {len(name)} characters, more than {_LONGEST}.")


def _of_class(call: Call, class_name: str) -> dict[str, int]:
    own = call.read(quotas.of_class, class_name)
    return {name: own.get(name, limit) for name, limit in _defaults(call).items()}


def _asked(call: Call, key: str = "quota_set") -> dict[str, int]:
    """Return the limits that are set. Raises Invalid for resources that there are not."""
    known, found = set(_names(call)), {}
    for name, value in call.body[key].items():
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
        """Show what a project may have, and has; since 3.39 also another one's."""
        asked = call.query.last("project_id") or call.query.last("tenant_id")
        chosen = call.is_admin and call.version >= _OTHERS_SINCE
        project = asked if asked and chosen else call.project
        limits = _limits(call, project)
        used = call.read(volume_usage.usage, project)
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
