"""The rules of the Block Storage API, one line each: names and defaults are Cinder's."""

from __future__ import annotations

from web.policy import ADMIN, PROJECT_MEMBER, PROJECT_READER, rule

_VOLUME = "/volumes/{volume_id}"
_ACTION = f"{_VOLUME}/action"
_TYPE = "/types/{type_id}"

# (rule, who may, what, method, path)
_ROWS = (
    ("volume:create", PROJECT_MEMBER, "Make a volume.", "POST", "/volumes"),
    ("volume:create_from_image", PROJECT_MEMBER, "Make a volume of an image.", "POST", "/volumes"),
    ("volume:get_all", PROJECT_READER, "List volumes.", "GET", "/volumes"),
    ("volume:get", PROJECT_READER, "Show a volume.", "GET", _VOLUME),
    ("volume:update", PROJECT_MEMBER, "Rename or describe a volume.", "PUT", _VOLUME),
    ("volume:delete", PROJECT_MEMBER, "Delete a volume.", "DELETE", _VOLUME),
    ("volume:force_delete", ADMIN, "Delete a volume in more states.", "DELETE", _VOLUME),
    ("volume:extend", PROJECT_MEMBER, "Extend a volume.", "POST", _ACTION),
    ("volume:extend_attached_volume", PROJECT_MEMBER, "While it is used.", "POST", _ACTION),
    ("volume:get_volume_metadata", PROJECT_READER, "Show metadata.", "GET", f"{_VOLUME}/metadata"),
    (
        "volume:update_volume_metadata",
        PROJECT_MEMBER,
        "Change metadata.",
        "POST",
        f"{_VOLUME}/metadata",
    ),
    (
        "volume:delete_volume_metadata",
        PROJECT_MEMBER,
        "Delete metadata.",
        "DELETE",
        f"{_VOLUME}/metadata/{{key}}",
    ),
    (
        "volume_extension:volume_actions:reserve",
        PROJECT_MEMBER,
        "Reserve a volume, or no more.",
        "POST",
        _ACTION,
    ),
    (
        "volume_extension:volume_actions:set_bootable",
        PROJECT_MEMBER,
        "Say that a volume can be booted from.",
        "POST",
        _ACTION,
    ),
    (
        "volume:update_readonly_flag",
        PROJECT_MEMBER,
        "Have servers get a volume read-only.",
        "POST",
        _ACTION,
    ),
    (
        "volume_extension:volume_image_metadata:show",
        PROJECT_READER,
        "Show the image metadata of a volume.",
        "POST",
        _ACTION,
    ),
    (
        "volume_extension:volume_image_metadata:set",
        PROJECT_MEMBER,
        "Change them.",
        "POST",
        _ACTION,
    ),
    (
        "volume_extension:volume_admin_actions:reset_status",
        ADMIN,
        "Say what a volume is.",
        "POST",
        _ACTION,
    ),
    (
        "volume_extension:volume_admin_actions:force_delete",
        ADMIN,
        "Delete a volume in more states.",
        "POST",
        _ACTION,
    ),
    ("volume:attachments", PROJECT_READER, "List and show attachments.", "GET", "/attachments"),
    (
        "volume:attachment_create",
        PROJECT_MEMBER,
        "Reserve a volume for a server.",
        "POST",
        "/attachments",
    ),
    (
        "volume:attachment_delete",
        PROJECT_MEMBER,
        "Delete an attachment that no server uses.",
        "DELETE",
        "/attachments/{attachment_id}",
    ),
    ("volume_extension:type_get_all", PROJECT_READER, "List volume types.", "GET", "/types"),
    ("volume_extension:type_get", PROJECT_READER, "Show a volume type.", "GET", _TYPE),
    ("volume_extension:type_create", ADMIN, "Make a volume type.", "POST", "/types"),
    ("volume_extension:type_update", ADMIN, "Change a volume type.", "PUT", _TYPE),
    ("volume_extension:type_delete", ADMIN, "Delete a volume type.", "DELETE", _TYPE),
    (
        "volume_extension:types_extra_specs:index",
        PROJECT_READER,
        "Show extra specs.",
        "GET",
        f"{_TYPE}/extra_specs",
    ),
    (
        "volume_extension:types_extra_specs:create",
        ADMIN,
        "Change extra specs.",
        "POST",
        f"{_TYPE}/extra_specs",
    ),
    (
        "volume_extension:volume_type_access:get_all_for_type",
        ADMIN,
        "Show who may use a type.",
        "GET",
        f"{_TYPE}/os-volume-type-access",
    ),
    (
        "volume_extension:volume_type_access:addProjectAccess",
        ADMIN,
        "Change it.",
        "POST",
        f"{_TYPE}/action",
    ),
    (
        "volume_extension:quotas:show",
        PROJECT_READER,
        "Show a project's quota.",
        "GET",
        "/os-quota-sets/{project_id}",
    ),
    (
        "volume_extension:quotas:update",
        ADMIN,
        "Change it.",
        "PUT",
        "/os-quota-sets/{project_id}",
    ),
    ("volume_extension:services:index", ADMIN, "List services.", "GET", "/os-services"),
    ("volume_extension:hosts", ADMIN, "List hosts.", "GET", "/os-hosts"),
    (
        "scheduler_extension:scheduler_stats:get_pools",
        ADMIN,
        "List pools.",
        "GET",
        "/scheduler-stats/get_pools",
    ),
    (
        "volume_extension:volume_tenant_attribute",
        PROJECT_READER,
        "Show whose a volume is.",
        "GET",
        _VOLUME,
    ),
    (
        "volume_extension:volume_host_attribute",
        ADMIN,
        "Show where a volume is.",
        "GET",
        _VOLUME,
    ),
)

RULES = tuple(rule(name, check, text, (method, path)) for name, check, text, method, path in _ROWS)
