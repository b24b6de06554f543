"""`/os-quota-sets` and `/limits`: limits and usage of projects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oslo_utils import strutils

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import must_be_a_project
from api.compute.schemas import operators as schemas
from common.errors import Invalid, NotSupported
from common.resources import quotas as common_quotas
from common.resources.quotas import DEFAULT_CLASS, UNLIMITED
from db.reads import quotas


def _limits(call: Call, project_id: str) -> tuple[dict[str, int], dict[str, int]]:
    """(limits, usage) of a project."""
    found = call.read(quotas.of_project, project_id)
    return {**_defaults(call), **found.limits}, dict(found.used)


def _defaults(call: Call) -> dict[str, int]:
    return common_quotas.defaults(call.cloud.conf)


def _names(call: Call) -> tuple[str, ...]:
    """Return the quotas that a microversion shows."""
    names: tuple[str, ...] = schemas.COMPUTE_QUOTAS
    if call.version < 57:
        names += schemas.FILE_QUOTAS
    if call.version < 36:
        names += schemas.NETWORK_QUOTAS
    return names


def _the_project(call: Call, params: dict[str, str]) -> Mapping[str, Any]:
    """Return the policy's target: the project that the path names."""
    return {"project_id": params["project_id"], "user_id": call.ctxt.user_id}


class QuotaSets:
    """The quotas of projects. Users have none: what names one is refused, rather than answered
    with its project's numbers."""

    @operation("os-quota-sets:show", query=schemas.QUOTAS, on=_the_project)
    def show(self, call: Call, project_id: str) -> Any:
        """Show a project's limits."""
        must_be_a_project(call, project_id)
        _require_no_user(call)
        limits, _ = _limits(call, project_id)
        return {"quota_set": {"id": project_id} | _shown(call, limits)}

    @operation("os-quota-sets:detail", query=schemas.QUOTAS, on=_the_project)
    def detail(self, call: Call, project_id: str) -> Any:
        """Show a project's limits and usage."""
        must_be_a_project(call, project_id)
        _require_no_user(call)
        limits, used = _limits(call, project_id)
        return {
            "quota_set": {"id": project_id}
            | {
                name: {"limit": limit, "in_use": used.get(name, 0), "reserved": 0}
                for name, limit in _shown(call, limits).items()
            }
        }

    @operation("os-quota-sets:defaults", query=schemas.QUOTA_DEFAULTS, on=_the_project)
    def defaults(self, call: Call, project_id: str) -> Any:
        """Show the default limits."""
        must_be_a_project(call, project_id)
        limits = {**_defaults(call), **call.read(quotas.of_class, DEFAULT_CLASS)}
        return {"quota_set": {"id": project_id} | _shown(call, limits)}

    @operation(
        "os-quota-sets:update",
        body=schemas.SET_QUOTAS,
        query=schemas.QUOTAS,
        on=_the_project,
    )
    def update(self, call: Call, project_id: str) -> Any:
        """Set a project's limits."""
        must_be_a_project(call, project_id)
        _require_no_user(call)
        asked = call.body["quota_set"]
        force = bool(strutils.bool_from_string(asked.get("force", False)))
        wanted = {
            name: int(limit) for name, limit in asked.items() if name in _KEPT and limit != ""
        }
        if wanted:
            call.conductor.set_quota(call.ctxt, project_id, wanted, force=force)
        limits, _ = _limits(call, project_id)
        return {"quota_set": _shown(call, limits)}

    @operation("os-quota-sets:delete", status=202, query=schemas.QUOTAS, on=_the_project)
    def delete(self, call: Call, project_id: str) -> None:
        """Reset a project's limits to the defaults."""
        _require_no_user(call)
        call.conductor.reset_quota(call.ctxt, project_id, _KEPT)


def _require_no_user(call: Call) -> None:
    """Raise NotSupported for a request about a user's quotas."""
    if call.query.last("user_id"):
        raise NotSupported("Quotas of users are not supported: leave user_id out.")


#: what limits may be set of; those of networks are shown again, and limit nothing
_KEPT = (*common_quotas.RESOURCES, *schemas.NETWORK_QUOTAS)


def _shown(call: Call, limits: dict[str, int]) -> dict[str, int]:
    return {name: limits.get(name, UNLIMITED) for name in _names(call)}


class QuotaClassSets:
    """Quota classes: the limits of `default` are the defaults of all projects."""

    @operation("os-quota-class-sets:show")
    def show(self, call: Call, class_name: str) -> Any:
        """Show the limits of a class."""
        return {"quota_class_set": {"id": class_name} | _of_class(call, class_name)}

    @operation("os-quota-class-sets:update", body=schemas.SET_CLASS_QUOTAS)
    def update(self, call: Call, class_name: str) -> Any:
        """Set limits of a class."""
        if len(class_name) > _LONGEST_CLASS:
            raise Invalid(
                f"quota_class_name has {len(class_name)} characters, more than {_LONGEST_CLASS}."
            )
        wanted = {
            name: int(limit)
            for name, limit in call.body["quota_class_set"].items()
            if name in _KEPT and limit != ""
        }
        if wanted:
            call.conductor.set_quota_class(call.ctxt, class_name, wanted)
        return {"quota_class_set": _of_class(call, class_name)}


_LONGEST_CLASS = 255


def _of_class(call: Call, class_name: str) -> dict[str, int]:
    """Return what a microversion shows of a class."""
    limits = {**_defaults(call), **call.read(quotas.of_class, class_name)}
    names: tuple[str, ...] = schemas.COMPUTE_QUOTAS
    if call.version < 57:
        names += schemas.FILE_QUOTAS
    if call.version < 50:
        names += schemas.NETWORK_QUOTAS
        names = tuple(name for name in names if not name.startswith("server_group"))
    return {name: limits.get(name, UNLIMITED) for name in names}


#: name in `/limits` → quota
_ABSOLUTE = {
    "maxTotalInstances": "instances",
    "maxTotalCores": "cores",
    "maxTotalRAMSize": "ram",
    "maxServerMeta": "metadata_items",
    "maxImageMeta": "metadata_items",
    "maxTotalKeypairs": "key_pairs",
    "maxServerGroups": "server_groups",
    "maxServerGroupMembers": "server_group_members",
    "maxPersonality": "injected_files",
    "maxPersonalitySize": "injected_file_content_bytes",
    "maxTotalFloatingIps": "floating_ips",
    "maxSecurityGroups": "security_groups",
    "maxSecurityGroupRules": "security_group_rules",
}
_USED = {
    "totalInstancesUsed": "instances",
    "totalCoresUsed": "cores",
    "totalRAMUsed": "ram",
    "totalServerGroupsUsed": "server_groups",
    "totalFloatingIpsUsed": "floating_ips",
    "totalSecurityGroupsUsed": "security_groups",
}


class Limits:
    """`/limits`: limits and usage in another form, for all users."""

    @operation("limits", query=schemas.LIMITS)
    def index(self, call: Call) -> Any:
        """Show the limits of the own project; of `tenant_id` for administrators."""
        project_id = call.query.last("tenant_id")
        if project_id is not None:
            call.check("limits:other_project")
        limits, used = _limits(call, project_id or call.project)
        known = _names(call)
        absolute = {
            name: limits.get(quota, UNLIMITED)
            for name, quota in _ABSOLUTE.items()
            if quota in known and not (name == "maxImageMeta" and call.version >= 39)
        }
        absolute |= {name: used.get(quota, 0) for name, quota in _USED.items() if quota in known}
        return {"limits": {"rate": [], "absolute": absolute}}
