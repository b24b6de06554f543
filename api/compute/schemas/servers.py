"""Bodies and queries of `/servers`; facts from nova/api/openstack/compute/schemas/servers.py."""

from __future__ import annotations

from typing import Any

from api.compute.schemas import types
from api.compute.schemas.types import Schema, body, changed, query, record

_LEGACY_DEVICE: dict[str, Schema] = {
    "virtual_name": {"type": "string", "maxLength": 255},
    "volume_id": types.UUID,
    "snapshot_id": types.UUID,
    "volume_size": types.SIZE,
    "device_name": {
        "type": "string",
        "minLength": 1,
        "maxLength": 255,
        "pattern": "^[a-zA-Z0-9._/-]*$",
    },
    "delete_on_termination": types.BOOLEAN,
    "no_device": {},
    "connection_info": {"type": "string", "maxLength": 16_777_215},
}
_DEVICE: dict[str, Schema] = {
    **_LEGACY_DEVICE,
    "source_type": {"type": "string", "enum": ["volume", "image", "snapshot", "blank"]},
    "uuid": {
        "type": "string",
        "minLength": 1,
        "maxLength": 255,
        "pattern": "^[a-zA-Z0-9._-]*$",
    },
    "image_id": types.UUID,
    "destination_type": {"type": "string", "enum": ["local", "volume"]},
    "guest_format": {"type": "string", "maxLength": 255},
    "device_type": {"type": "string", "maxLength": 255},
    "disk_bus": {"type": "string", "maxLength": 255},
    "boot_index": {"type": ["integer", "string", "null"], "pattern": "^-?[0-9]+$"},
}


def _devices(properties: dict[str, Schema]) -> Schema:
    return {"type": "array", "items": record(properties)}


def _networks(*, uuid: Schema, tag: bool) -> Schema:
    properties: dict[str, Schema] = {
        "fixed_ip": types.IP_ADDRESS,
        "port": {"type": ["string", "null"], "format": "uuid"},
        "uuid": uuid,
    }
    return {"type": "array", "items": record(properties | ({"tag": types.TAG} if tag else {}))}


def _or_auto_or_none(networks: Schema) -> Schema:
    return {"oneOf": [networks, {"type": "string", "enum": ["none", "auto"]}]}


_UUIDS: Schema = {"type": "array", "items": types.UUID}
_HINTS: Schema = {
    "type": "object",
    "properties": {
        "group": {"oneOf": [_UUIDS, types.UUID]},
        "different_host": {"oneOf": [types.UUID, _UUIDS]},
        "same_host": {"type": ["string", "array"], "items": types.UUID},
        "query": {"type": ["string", "object"]},
        "target_cell": types.NAME,
        "different_cell": {"type": ["string", "array"], "items": {"type": "string"}},
        "build_near_host_ip": types.IP_ADDRESS,
        "cidr": {"type": "string", "pattern": "^/[0-9a-f.:]+$"},
    },
    "additionalProperties": True,
}
_CREATED: dict[str, Schema] = {
    "name": types.NAME,
    "imageRef": types.UUID_OR_EMPTY,
    "flavorRef": {"type": ["string", "integer"], "minLength": 1},
    "adminPass": {"type": "string"},
    "metadata": types.METADATA,
    "networks": _networks(uuid={"type": "string"}, tag=False),
    "OS-DCF:diskConfig": {"type": "string", "enum": ["AUTO", "MANUAL"]},
    "accessIPv4": {"type": "string", "format": "ipv4"},
    "accessIPv6": {"type": "string", "format": "ipv6"},
    "personality": {
        "type": "array",
        "items": record(
            {"path": {"type": "string"}, "contents": {"type": "string", "format": "base64"}}
        ),
    },
    "availability_zone": types.NAME,
    "block_device_mapping": _devices(_LEGACY_DEVICE),
    "block_device_mapping_v2": _devices(_DEVICE),
    "config_drive": types.BOOLEAN,
    "key_name": types.NAME,
    "min_count": types.POSITIVE,
    "max_count": types.POSITIVE,
    "return_reservation_id": types.BOOLEAN,
    "security_groups": {"type": "array", "items": record({"name": types.NAME})},
    "user_data": {"type": "string", "format": "base64", "maxLength": 65_535},
}
_CREATE: Schema = {
    "type": "object",
    "properties": {
        "server": record(_CREATED, ["name", "flavorRef"]),
        "os:scheduler_hints": _HINTS,
        "OS-SCH-HNT:scheduler_hints": _HINTS,
    },
    "required": ["server"],
    "additionalProperties": False,
}

_TAGGED_DEVICE = {**_DEVICE, "tag": types.TAG}
_TAGGED_NETWORKS = _networks(uuid={"type": "string"}, tag=True)


def _server(schema: Schema, **properties: Schema | None) -> Schema:
    return changed(schema, "server", **properties)


_219 = _server(_CREATE, description=types.DESCRIPTION)
_232 = _server(_219, networks=_TAGGED_NETWORKS, block_device_mapping_v2=_devices(_TAGGED_DEVICE))
_233 = _server(_219, networks=_TAGGED_NETWORKS)
_237 = _server(_233, networks=_or_auto_or_none(_networks(uuid=types.UUID, tag=False)))
_237["properties"]["server"]["required"].append("networks")
_242 = _server(
    _237,
    networks=_or_auto_or_none(_networks(uuid=types.UUID, tag=True)),
    block_device_mapping_v2=_devices(_TAGGED_DEVICE),
)
_252 = _server(_242, tags={"type": "array", "items": types.TAG, "maxItems": types.MAX_TAGS})
_257 = _server(_252, personality=None)
_CERTIFICATES: Schema = {
    "type": ["array", "null"],
    "minItems": 1,
    "maxItems": 50,
    "uniqueItems": True,
    "items": {"type": "string", "minLength": 1},
}
_263 = _server(_257, trusted_image_certificates=_CERTIFICATES)
_267 = _server(
    _263,
    block_device_mapping_v2=_devices(
        {**_TAGGED_DEVICE, "volume_type": {"type": ["string", "null"], "maxLength": 255}}
    ),
)
_274 = _server(_267, host=types.FQDN, hypervisor_hostname=types.FQDN)
_290 = _server(_274, hostname=types.HOSTNAME)
_294 = _server(_290, hostname=types.FQDN)

CREATE = {
    "2.1": _CREATE,
    "2.19": _219,
    "2.32": _232,
    "2.33": _233,
    "2.37": _237,
    "2.42": _242,
    "2.52": _252,
    "2.57": _257,
    "2.63": _263,
    "2.67": _267,
    "2.74": _274,
    "2.90": _290,
    "2.94": _294,
}

_REBUILT = ("name", "adminPass", "metadata", "OS-DCF:diskConfig", "accessIPv4", "accessIPv6")
_REBUILD = body(
    "rebuild",
    record(
        {
            "imageRef": types.UUID,
            **{name: _CREATED[name] for name in (*_REBUILT, "personality")},
            "preserve_ephemeral": types.BOOLEAN,
        },
        ["imageRef"],
    ),
)
_REBUILD_219 = changed(_REBUILD, "rebuild", description=types.DESCRIPTION)
_REBUILD_254 = changed(_REBUILD_219, "rebuild", key_name=types.NAME_OR_NONE)
_REBUILD_257 = changed(
    _REBUILD_254,
    "rebuild",
    personality=None,
    user_data={"type": ["string", "null"], "format": "base64", "maxLength": 65_535},
)
_REBUILD_263 = changed(_REBUILD_257, "rebuild", trusted_image_certificates=_CERTIFICATES)
REBUILD = {
    "2.1": _REBUILD,
    "2.19": _REBUILD_219,
    "2.54": _REBUILD_254,
    "2.57": _REBUILD_257,
    "2.63": _REBUILD_263,
    "2.90": changed(_REBUILD_263, "rebuild", hostname=types.HOSTNAME),
    "2.94": changed(_REBUILD_263, "rebuild", hostname=types.FQDN),
}

_RESCUE = record({"adminPass": _CREATED["adminPass"], "rescue_image_ref": types.UUID})
RESCUE = {"2.1": body("rescue", {**_RESCUE, "type": ["object", "null"]})}
UNRESCUE = {"2.1": body("unrescue", {})}

_UPDATED = ("name", "OS-DCF:diskConfig", "accessIPv4", "accessIPv6")
_UPDATE = body("server", record({name: _CREATED[name] for name in _UPDATED}))
_UPDATE_219 = _server(_UPDATE, description=types.DESCRIPTION)

_UPDATE_294 = _server(_UPDATE_219, hostname=types.FQDN)
UPDATE = {
    "2.1": _UPDATE,
    "2.19": _UPDATE_219,
    "2.90": _server(_UPDATE_219, hostname=types.HOSTNAME),
    "2.94": _UPDATE_294,
    "2.104": _server(_UPDATE_294, pinned_availability_zone=types.NAME_OR_NONE),
}

START = {"2.1": body("os-start", {})}
STOP = {"2.1": body("os-stop", {})}
REBOOT = {
    "2.1": body(
        "reboot",
        record(
            {
                "type": {
                    "type": "string",
                    "enum": ["HARD", "Hard", "hard", "SOFT", "Soft", "soft"],
                }
            },
            ["type"],
        ),
    )
}

CHANGE_PASSWORD = {
    "2.1": body("changePassword", record({"adminPass": {"type": "string"}}, ["adminPass"]))
}
PAUSE = {"2.1": body("pause", {})}
UNPAUSE = {"2.1": body("unpause", {})}
SUSPEND = {"2.1": body("suspend", {})}
RESUME = {"2.1": body("resume", {})}

_REASON: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
RESIZE = {
    "2.1": body(
        "resize",
        record(
            {
                "flavorRef": {"type": ["string", "integer"], "minLength": 1},
                "OS-DCF:diskConfig": {"type": "string", "enum": ["AUTO", "MANUAL"]},
            },
            ["flavorRef"],
        ),
    )
}
_LIVE_HOST: Schema = {**types.FQDN, "type": ["string", "null"]}
_AUTO_OR_BOOLEAN: Schema = {"enum": [*types.BOOLEAN["enum"], "auto"]}
MIGRATE_LIVE = {
    "2.1": body(
        "os-migrateLive",
        record(
            {
                "block_migration": types.BOOLEAN,
                "disk_over_commit": types.BOOLEAN,
                "host": _LIVE_HOST,
            },
            ("block_migration", "disk_over_commit", "host"),
        ),
    ),
    "2.25": body(
        "os-migrateLive",
        record(
            {"block_migration": _AUTO_OR_BOOLEAN, "host": _LIVE_HOST}, ("block_migration", "host")
        ),
    ),
    "2.30": body(
        "os-migrateLive",
        record(
            {"block_migration": _AUTO_OR_BOOLEAN, "host": _LIVE_HOST, "force": types.BOOLEAN},
            ("block_migration", "host"),
        ),
    ),
    "2.68": body(
        "os-migrateLive",
        record(
            {"block_migration": _AUTO_OR_BOOLEAN, "host": _LIVE_HOST}, ("block_migration", "host")
        ),
    ),
}
MIGRATE = {
    "2.1": body("migrate", {}),
    "2.56": body("migrate", {**record({"host": types.FQDN}), "type": ["object", "null"]}),
}
_EVACUATE = {"host": types.FQDN, "adminPass": _CREATED["adminPass"]}
EVACUATE = {
    "2.1": body(
        "evacuate",
        record({**_EVACUATE, "onSharedStorage": types.BOOLEAN}, ["onSharedStorage"]),
    ),
    "2.14": body("evacuate", record(_EVACUATE)),
    "2.29": body("evacuate", record({**_EVACUATE, "force": types.BOOLEAN})),
    "2.68": body("evacuate", record(_EVACUATE)),
}
CONFIRM_RESIZE = {"2.1": body("confirmResize", {})}
REVERT_RESIZE = {"2.1": body("revertResize", {})}

SHELVE = {"2.1": body("shelve", {})}
SHELVE_OFFLOAD = {"2.1": body("shelveOffload", {})}
_ZONE: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
_ZONE_OR_NONE: Schema = {"type": ["string", "null"], "minLength": 1, "maxLength": 255}
_UNSHELVE_TO: Schema = {
    **record({"availability_zone": _ZONE_OR_NONE, "host": _ZONE}),
    "type": ["object", "null"],
    "minProperties": 1,
}
UNSHELVE = {
    "2.1": body("unshelve", {}),
    "2.77": body(
        "unshelve",
        {
            **record({"availability_zone": _ZONE}, ["availability_zone"]),
            "type": ["object", "null"],
        },
    ),
    "2.91": body("unshelve", _UNSHELVE_TO),
}
_IMAGE = {"name": types.NAME, "metadata": types.METADATA}
CREATE_IMAGE = {"2.1": body("createImage", record(_IMAGE, ["name"]))}
CREATE_BACKUP = {
    "2.1": body(
        "createBackup",
        record(
            {
                **_IMAGE,
                "backup_type": {"type": "string"},
                "rotation": types.NOT_NEGATIVE,
            },
            ["name", "backup_type", "rotation"],
        ),
    ),
}

LOCK = {
    "2.1": body("lock", {}),
    "2.73": body("lock", {**record({"locked_reason": _REASON}), "type": ["object", "null"]}),
}
UNLOCK = {"2.1": body("unlock", {})}

RESET_STATE = {
    "2.1": body(
        "os-resetState",
        record({"state": {"type": "string", "enum": ["active", "error"]}}, ["state"]),
    )
}
RESTORE = {"2.1": body("restore", {})}
FORCE_DELETE = {"2.1": body("forceDelete", {})}
CRASH_DUMP = {"2.17": body("trigger_crash_dump", {"type": "null"})}
INJECT_NETWORK_INFO = {"2.1": body("injectNetworkInfo", {})}

#: parameters that name a thing of Nova's database: refused as filters
NOT_FILTERS = (
    *("block_device_mapping", "services", "metadata", "system_metadata"),
    *("info_cache", "security_groups", "pci_devices"),
)

#: sort keys that Nova accepted once and ignores now
IGNORED_SORT_KEYS = (
    *("architecture", "cell_name", "cleaned", "default_ephemeral_device"),
    *("default_swap_device", "deleted", "deleted_at", "disable_terminate"),
    *("ephemeral_gb", "ephemeral_key_uuid", "id", "key_data", "launched_on"),
    *("locked", "memory_mb", "os_type", "reservation_id", "root_gb"),
    *("shutdown_terminate", "user_data", "vcpus", "vm_mode"),
)
SORT_KEYS = (
    *("access_ip_v4", "access_ip_v6", "auto_disk_config", "availability_zone"),
    *("config_drive", "created_at", "display_description", "display_name", "host"),
    *("hostname", "image_ref", "instance_type_id", "kernel_id", "key_name"),
    *("launch_index", "launched_at", "locked_by", "node", "power_state", "progress"),
    *("project_id", "ramdisk_id", "root_device_name", "task_state", "terminated_at"),
    *("updated_at", "user_id", "uuid", "vm_state"),
)

_TEXTS = (
    *("user_id", "project_id", "tenant_id", "launch_index", "image_ref", "image"),
    *("vm_state", "task_state", "host", "uuid", "sort_dir", "all_tenants"),
    *("soft_deleted", "deleted", "status", *NOT_FILTERS),
)
_PATTERNS = (
    *("kernel_id", "ramdisk_id", "hostname", "key_name", "power_state", "node", "flavor"),
    *("reservation_id", "launched_at", "terminated_at", "availability_zone", "name"),
    *("display_name", "description", "display_description", "locked_by"),
    *("root_device_name", "config_drive", "access_ip_v4", "access_ip_v6"),
    *("auto_disk_config", "progress", "ip", "ip6", "created_at"),
)
_FILTERS: dict[str, Schema] = {
    **dict.fromkeys(_TEXTS, types.TEXT),
    **dict.fromkeys(_PATTERNS, types.REGEX),
    "changes-since": types.MOMENT,
    "sort_key": types.choice(*SORT_KEYS, *IGNORED_SORT_KEYS),
    **types.PAGING,
}
_FILTERS_226 = {
    **_FILTERS,
    # Nova wants a regular expression here and takes it for text.
    **dict.fromkeys(("tags", "tags-any", "not-tags", "not-tags-any"), types.TEXT),
}
_FILTERS_266 = {**_FILTERS_226, "changes-before": types.MOMENT}
_FILTERS_273 = {
    **_FILTERS_266,
    "locked": types.TEXT,
}
#: micronova's own, where Nova refuses what it doesn't know
SEARCH, TOTALS = "micronova:search", "micronova:totals"
OURS_SINCE = 75
_FILTERS_275 = {
    **_FILTERS_273,
    "sort_key": types.choice(*SORT_KEYS, "locked"),
    SEARCH: types.one({"type": "array", "items": {"type": "string", "maxLength": 255}}),
    TOTALS: types.one({"type": "array", "items": types.BOOLEAN}),
}


def _list(filters: dict[str, Schema], *, more: bool) -> dict[str, Any]:
    # Names with a leading underscore are checked, and then refused, at every version.
    return {**query(filters, more=more), "patternProperties": {"^_": types.TEXT}}


LIST = {
    "2.1": _list(_FILTERS, more=True),
    "2.26": _list(_FILTERS_226, more=True),
    "2.66": _list(_FILTERS_266, more=True),
    "2.73": _list(_FILTERS_273, more=True),
    "2.75": _list(_FILTERS_275, more=False),
}
