"""The rules of the Block Storage API, one line each: names and defaults are Cinder's.

Here, as the compute API asks some of them for its own old `/os-volumes`.
"""

from __future__ import annotations

from web.policy import ADMIN, PROJECT_MEMBER, PROJECT_READER, rule

_VOLUME = "/volumes/{volume_id}"
_ACTION = f"{_VOLUME}/action"
_TYPE = "/types/{type_id}"
_BACKUP = "/backups/{backup_id}"
_SNAPSHOT = "/snapshots/{snapshot_id}"
_TRANSFER = "/os-volume-transfer/{transfer_id}"
_MESSAGE = "/messages/{message_id}"
_DEFAULT = "/default-types/{project_id}"

#: those that the compute API's old `/os-volumes` and `/os-snapshots` ask, too
PROXIED = frozenset(
    {"volume:create", "volume:get_all", "volume:get", "volume:delete", "volume:create_snapshot"}
    | {"volume:get_all_snapshots", "volume:get_snapshot", "volume:delete_snapshot"}
)

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
    ("volume:reimage", PROJECT_MEMBER, "Give a volume an image.", "POST", _ACTION),
    ("volume:reimage_reserved", PROJECT_MEMBER, "While it is reserved.", "POST", _ACTION),
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
    ("volume:retype", PROJECT_MEMBER, "Give a volume another type.", "POST", _ACTION),
    (
        "volume_extension:volume_actions:upload_image",
        PROJECT_MEMBER,
        "Make an image of a volume.",
        "POST",
        _ACTION,
    ),
    (
        "volume_extension:volume_actions:upload_public",
        ADMIN,
        "Make one that everybody sees.",
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
    (
        "volume_extension:volume_admin_actions:force_detach",
        ADMIN,
        "Be told how volumes are detached.",
        "POST",
        _ACTION,
    ),
    (
        "volume_extension:volume_admin_actions:migrate_volume",
        ADMIN,
        "Be told how volumes are moved.",
        "POST",
        _ACTION,
    ),
    (
        "volume_extension:volume_admin_actions:migrate_volume_completion",
        ADMIN,
        "Be told how volumes are moved, at the end of a migration.",
        "POST",
        _ACTION,
    ),
    (
        "volume_extension:volume_unmanage",
        ADMIN,
        "Be told why volumes can't be given up.",
        "POST",
        _ACTION,
    ),
    (
        "volume:revert_to_snapshot",
        PROJECT_MEMBER,
        "Bring a volume back to its last snapshot.",
        "POST",
        _ACTION,
    ),
    ("backup:get_all", PROJECT_READER, "List backups.", "GET", "/backups"),
    ("backup:get", PROJECT_READER, "Show a backup.", "GET", _BACKUP),
    ("backup:create", PROJECT_MEMBER, "Back a volume up.", "POST", "/backups"),
    ("backup:update", PROJECT_MEMBER, "Rename or describe a backup.", "PUT", _BACKUP),
    ("backup:delete", PROJECT_MEMBER, "Delete a backup.", "DELETE", _BACKUP),
    ("backup:restore", PROJECT_MEMBER, "Restore a backup.", "POST", f"{_BACKUP}/restore"),
    ("backup:backup_project_attribute", ADMIN, "Show whose a backup is.", "GET", _BACKUP),
    ("backup:backup-import", ADMIN, "Import a record.", "POST", "/backups/import_record"),
    ("backup:export-import", ADMIN, "Export a record.", "GET", f"{_BACKUP}/export_record"),
    (
        "volume_extension:backup_admin_actions:reset_status",
        ADMIN,
        "Say what a backup is.",
        "POST",
        f"{_BACKUP}/action",
    ),
    (
        "volume_extension:backup_admin_actions:force_delete",
        ADMIN,
        "Delete a backup in more states.",
        "POST",
        f"{_BACKUP}/action",
    ),
    ("volume:get_all_snapshots", PROJECT_READER, "List snapshots.", "GET", "/snapshots"),
    ("volume:create_snapshot", PROJECT_MEMBER, "Take a snapshot.", "POST", "/snapshots"),
    ("volume:get_snapshot", PROJECT_READER, "Show a snapshot.", "GET", _SNAPSHOT),
    ("volume:update_snapshot", PROJECT_MEMBER, "Rename a snapshot.", "PUT", _SNAPSHOT),
    ("volume:delete_snapshot", PROJECT_MEMBER, "Delete a snapshot.", "DELETE", _SNAPSHOT),
    (
        "volume:get_snapshot_metadata",
        PROJECT_READER,
        "Show the metadata of a snapshot.",
        "GET",
        f"{_SNAPSHOT}/metadata",
    ),
    (
        "volume:update_snapshot_metadata",
        PROJECT_MEMBER,
        "Change them.",
        "POST",
        f"{_SNAPSHOT}/metadata",
    ),
    (
        "volume:delete_snapshot_metadata",
        PROJECT_MEMBER,
        "Delete them.",
        "DELETE",
        f"{_SNAPSHOT}/metadata/{{key}}",
    ),
    (
        "volume_extension:extended_snapshot_attributes",
        PROJECT_READER,
        "Show whose a snapshot is, and how far it is.",
        "GET",
        _SNAPSHOT,
    ),
    (
        "volume_extension:snapshot_admin_actions:reset_status",
        ADMIN,
        "Say what a snapshot is.",
        "POST",
        f"{_SNAPSHOT}/action",
    ),
    (
        "volume_extension:snapshot_admin_actions:force_delete",
        ADMIN,
        "Delete a snapshot, as an administrator.",
        "POST",
        f"{_SNAPSHOT}/action",
    ),
    (
        "volume:get_all_transfers",
        PROJECT_READER,
        "List transfers of volumes.",
        "GET",
        "/os-volume-transfer",
    ),
    ("volume:get_transfer", PROJECT_READER, "Show a transfer.", "GET", _TRANSFER),
    (
        "volume:create_transfer",
        PROJECT_MEMBER,
        "Offer a volume to another project.",
        "POST",
        "/os-volume-transfer",
    ),
    (
        "volume:accept_transfer",
        PROJECT_MEMBER,
        "Take a volume that is offered.",
        "POST",
        f"{_TRANSFER}/accept",
    ),
    ("volume:delete_transfer", PROJECT_MEMBER, "End a transfer.", "DELETE", _TRANSFER),
    ("message:get_all", PROJECT_READER, "List messages.", "GET", "/messages"),
    ("message:get", PROJECT_READER, "Show a message.", "GET", _MESSAGE),
    ("message:delete", PROJECT_MEMBER, "Delete a message.", "DELETE", _MESSAGE),
    ("volume:attachments", PROJECT_READER, "List and show attachments.", "GET", "/attachments"),
    (
        "volume:attachment_create",
        PROJECT_MEMBER,
        "Reserve a volume for a server.",
        "POST",
        "/attachments",
    ),
    *(
        (
            f"volume:attachment_{verb}",
            PROJECT_MEMBER,
            f"Be told how {text}.",
            method,
            f"/attachments/{{attachment_id}}{rest}",
        )
        for verb, text, method, rest in (
            ("update", "attachments are changed", "PUT", ""),
            ("complete", "attachments are completed", "POST", "/action"),
        )
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
        "volume_extension:types_extra_specs:read_sensitive",
        ADMIN,
        "Also those that aren't meant for users.",
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
    *(
        (
            f"volume_extension:volume_type_encryption:{verb}",
            ADMIN,
            text,
            method,
            f"{_TYPE}/encryption{rest}",
        )
        for verb, text, method, rest in (
            ("get", "Show how volumes of a type are encrypted.", "GET", ""),
            ("create", "Have them encrypted.", "POST", ""),
            ("update", "Change how.", "PUT", "/{key}"),
            ("delete", "Encrypt them no more.", "DELETE", "/{key}"),
        )
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
    (
        "volume_extension:quota_classes:get",
        ADMIN,
        "Show the limits of a class.",
        "GET",
        "/os-quota-class-sets/{class_name}",
    ),
    (
        "volume_extension:quota_classes:update",
        ADMIN,
        "Change the limits of a class.",
        "PUT",
        "/os-quota-class-sets/{class_name}",
    ),
    ("volume_extension:services:index", ADMIN, "List services.", "GET", "/os-services"),
    (
        "volume_extension:services:update",
        ADMIN,
        "Change a service.",
        "PUT",
        "/os-services/{name}",
    ),
    ("workers:cleanup", ADMIN, "Clean up after services.", "POST", "/workers/cleanup"),
    ("volume_extension:hosts", ADMIN, "List hosts.", "GET", "/os-hosts"),
    ("volume_extension:qos_specs_manage:get_all", ADMIN, "List QoS specs.", "GET", "/qos-specs"),
    ("clusters:get_all", ADMIN, "List clusters of services.", "GET", "/clusters"),
    ("volume_extension:default_get_all", ADMIN, "List default types.", "GET", "/default-types"),
    ("volume_extension:default_get", ADMIN, "Show one.", "GET", _DEFAULT),
    ("volume_extension:default_set_or_update", ADMIN, "Set one.", "PUT", _DEFAULT),
    ("volume_extension:default_unset", ADMIN, "Unset one.", "DELETE", _DEFAULT),
    (
        "volume_extension:list_manageable",
        ADMIN,
        "List volumes that could be managed.",
        "GET",
        "/manageable_volumes",
    ),
    (
        "snapshot_extension:list_manageable",
        ADMIN,
        "List snapshots that could be managed.",
        "GET",
        "/manageable_snapshots",
    ),
    (
        "volume_extension:volume_encryption_metadata",
        PROJECT_READER,
        "Show how a volume is encrypted.",
        "GET",
        f"{_VOLUME}/encryption",
    ),
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
