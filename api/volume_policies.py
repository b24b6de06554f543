"""The rules of the Block Storage API, one line each: names and defaults are Cinder's.

Here, as the compute API asks some of them for its own old `/os-volumes`.
"""

from __future__ import annotations

from web.policy import ADMIN, PROJECT_MEMBER, PROJECT_READER, rules

#: those that the compute API's old `/os-volumes` and `/os-snapshots` ask, too
PROXIED = frozenset(
    {"volume:create", "volume:get_all", "volume:get", "volume:delete", "volume:create_snapshot"}
    | {"volume:get_all_snapshots", "volume:get_snapshot", "volume:delete_snapshot"}
)

_ROWS = {
    PROJECT_READER: {
        "volume:get_all": "List volumes.",
        "volume:get": "Show a volume.",
        "volume:get_volume_metadata": "Show metadata.",
        "volume_extension:volume_image_metadata:show": "Show the image metadata of a volume.",
        "backup:get_all": "List backups.",
        "backup:get": "Show a backup.",
        "volume:get_all_snapshots": "List snapshots.",
        "volume:get_snapshot": "Show a snapshot.",
        "volume:get_snapshot_metadata": "Show the metadata of a snapshot.",
        "volume_extension:extended_snapshot_attributes": (
            "Show whose a snapshot is, and how far it is."
        ),
        "volume:get_all_transfers": "List transfers of volumes.",
        "volume:get_transfer": "Show a transfer.",
        "message:get_all": "List messages.",
        "message:get": "Show a message.",
        "volume:attachments": "List and show attachments.",
        "volume_extension:type_get_all": "List volume types.",
        "volume_extension:type_get": "Show a volume type.",
        "volume_extension:types_extra_specs:index": "Show extra specs.",
        "volume_extension:quotas:show": "Show a project's quota.",
        "volume_extension:volume_encryption_metadata": "Show how a volume is encrypted.",
        "volume_extension:volume_tenant_attribute": "Show whose a volume is.",
        "volume_extension:access_types_extra_specs": "Show a type with its extra specs.",
    },
    PROJECT_MEMBER: {
        "volume:create": "Make a volume.",
        "volume:create_from_image": "Make a volume of an image.",
        "volume:update": "Rename or describe a volume.",
        "volume:delete": "Delete a volume.",
        "volume:extend": "Extend a volume.",
        "volume:extend_attached_volume": "While it is used.",
        "volume:reimage": "Give a volume an image.",
        "volume:reimage_reserved": "While it is reserved.",
        "volume:update_volume_metadata": "Change metadata.",
        "volume:delete_volume_metadata": "Delete metadata.",
        "volume_extension:volume_actions:reserve": "Reserve a volume, or no more.",
        "volume_extension:volume_actions:set_bootable": "Say that a volume can be booted from.",
        "volume:retype": "Give a volume another type.",
        "volume_extension:volume_actions:upload_image": "Make an image of a volume.",
        "volume:update_readonly_flag": "Have servers get a volume read-only.",
        "volume_extension:volume_image_metadata:set": "Change them.",
        "volume:revert_to_snapshot": "Bring a volume back to its last snapshot.",
        "backup:create": "Back a volume up.",
        "backup:update": "Rename or describe a backup.",
        "backup:delete": "Delete a backup.",
        "backup:restore": "Restore a backup.",
        "volume:create_snapshot": "Take a snapshot.",
        "volume:update_snapshot": "Rename a snapshot.",
        "volume:delete_snapshot": "Delete a snapshot.",
        "volume:update_snapshot_metadata": "Change them.",
        "volume:delete_snapshot_metadata": "Delete them.",
        "volume:create_transfer": "Offer a volume to another project.",
        "volume:accept_transfer": "Take a volume that is offered.",
        "volume:delete_transfer": "End a transfer.",
        "message:delete": "Delete a message.",
        "volume:attachment_create": "Reserve a volume for a server.",
        "volume:attachment_update": "Change an attachment: always refused.",
        "volume:attachment_complete": "Complete an attachment: always refused.",
        "volume:attachment_delete": "Delete an attachment that no server uses.",
    },
    ADMIN: {
        "volume:force_delete": "Delete a volume in more states.",
        "volume_extension:volume_actions:upload_public": "Make a public image of a volume.",
        "volume_extension:volume_admin_actions:reset_status": "Say what a volume is.",
        "volume_extension:volume_admin_actions:force_delete": "Delete a volume in more states.",
        "volume_extension:volume_admin_actions:force_detach": "Force a detach: always refused.",
        "volume_extension:volume_admin_actions:migrate_volume": "Move a volume: always refused.",
        "volume_extension:volume_admin_actions:migrate_volume_completion": (
            "Complete a migration: always refused."
        ),
        "volume_extension:volume_unmanage": "Unmanage a volume: always refused.",
        "backup:backup_project_attribute": "Show whose a backup is.",
        "backup:backup-import": "Import a record.",
        "backup:export-import": "Export a record.",
        "volume_extension:backup_admin_actions:reset_status": "Say what a backup is.",
        "volume_extension:backup_admin_actions:force_delete": "Delete a backup in more states.",
        "volume_extension:snapshot_admin_actions:reset_status": "Say what a snapshot is.",
        "volume_extension:snapshot_admin_actions:force_delete": (
            "Delete a snapshot, as an administrator."
        ),
        "volume_extension:type_create": "Make a volume type.",
        "volume_extension:type_update": "Change a volume type.",
        "volume_extension:type_delete": "Delete a volume type.",
        "volume_extension:types_extra_specs:read_sensitive": (
            "Also those that aren't meant for users."
        ),
        "volume_extension:types_extra_specs:create": "Change extra specs.",
        "volume_extension:volume_type_access:get_all_for_type": "Show who may use a type.",
        "volume_extension:volume_type_access:addProjectAccess": "Change it.",
        "volume_extension:volume_type_encryption:get": "Show how volumes of a type are encrypted.",
        "volume_extension:volume_type_encryption:create": "Have them encrypted.",
        "volume_extension:volume_type_encryption:update": "Change how.",
        "volume_extension:volume_type_encryption:delete": "Encrypt them no more.",
        "volume_extension:quotas:update": "Change it.",
        "volume_extension:quota_classes:get": "Show the limits of a class.",
        "volume_extension:quota_classes:update": "Change the limits of a class.",
        "volume_extension:services:index": "List services.",
        "volume_extension:services:update": "Change a service.",
        "workers:cleanup": "Clean up after services.",
        "volume_extension:hosts": "List hosts.",
        "volume_extension:qos_specs_manage:get_all": "List QoS specs.",
        "clusters:get_all": "List clusters of services.",
        "volume_extension:default_get_all": "List default types.",
        "volume_extension:default_get": "Show one.",
        "volume_extension:default_set_or_update": "Set one.",
        "volume_extension:default_unset": "Unset one.",
        "volume_extension:list_manageable": "List volumes that could be managed.",
        "snapshot_extension:list_manageable": "List snapshots that could be managed.",
        "scheduler_extension:scheduler_stats:get_pools": "List pools.",
        "volume_extension:volume_host_attribute": "Show where a volume is.",
        "volume_extension:volume_mig_status_attribute": "Show whether a volume is migrated.",
        "volume_extension:access_types_qos_specs_id": "Show a type with its QoS specs.",
    },
}

RULES = rules(_ROWS)
