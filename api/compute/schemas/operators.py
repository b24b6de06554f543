"""Bodies and queries of services, hypervisors and their storages and tasks, quotas and limits."""

from __future__ import annotations

from api.compute.schemas import types
from api.compute.schemas.types import Schema, body, one, query, record

_WORD: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
_BY_NAME = {"host": types.FQDN, "binary": _WORD, "disabled_reason": _WORD}
UPDATE_SERVICE = {
    "2.1": record(_BY_NAME, ["host", "binary"]),
    "2.11": record({**_BY_NAME, "forced_down": types.BOOLEAN}, ["host", "binary"]),
    "2.53": record(
        {
            "status": {"type": "string", "enum": ["enabled", "disabled"]},
            "disabled_reason": _WORD,
            "forced_down": types.BOOLEAN,
        }
    ),
}
_SERVICES = {"host": types.TEXT, "binary": types.TEXT}
LIST_SERVICES = {"2.1": query(_SERVICES, more=True), "2.75": query(_SERVICES, more=False)}

_BOOLEANS: Schema = {"type": "array", "items": types.BOOLEAN}
LIST_HYPERVISORS = {
    "2.1": query({}, more=True),
    "2.33": query(types.PAGING, more=True),
    "2.53": query(
        {
            "limit": one(types.LIMIT),
            "marker": one(types.TEXT),
            "hypervisor_hostname_pattern": one({"type": "array", "items": types.FQDN}),
            "with_servers": one(_BOOLEANS),
        },
        more=False,
    ),
}
SHOW_HYPERVISOR = {
    "2.1": query({}, more=True),
    "2.53": query({"with_servers": one(_BOOLEANS)}, more=False),
}

_PROJECT = {"tenant_id": types.TEXT}
LIMITS = {"2.1": query(_PROJECT, more=True), "2.75": query(_PROJECT, more=False)}

_USER = {"user_id": types.TEXT}
QUOTAS = {"2.1": query(_USER, more=True), "2.75": query(_USER, more=False)}
QUOTA_DEFAULTS = {"2.1": query({}, more=True)}

_LIMIT: Schema = {
    "type": ["integer", "string"],
    "pattern": "^-?[0-9]+$",
    "minimum": -1,
    "maximum": types.MAX_INT,
}
COMPUTE_QUOTAS = (
    *("instances", "cores", "ram", "metadata_items", "key_pairs"),
    *("server_groups", "server_group_members"),
)
FILE_QUOTAS = ("injected_files", "injected_file_content_bytes", "injected_file_path_bytes")
NETWORK_QUOTAS = ("fixed_ips", "floating_ips", "security_groups", "security_group_rules")


def _set(*names: str) -> Schema:
    limits = dict.fromkeys(names, _LIMIT)
    return body("quota_set", record({**limits, "force": types.BOOLEAN}))


SET_QUOTAS = {
    "2.1": _set(*COMPUTE_QUOTAS, *FILE_QUOTAS, *NETWORK_QUOTAS),
    "2.36": _set(*COMPUTE_QUOTAS, *FILE_QUOTAS),
    "2.57": _set(*COMPUTE_QUOTAS),
}


def _set_class(*names: str) -> Schema:
    return body("quota_class_set", record(dict.fromkeys(names, _LIMIT)))


SET_CLASS_QUOTAS = {
    "2.1": _set_class(*COMPUTE_QUOTAS, *FILE_QUOTAS, *NETWORK_QUOTAS),
    "2.50": _set_class(*COMPUTE_QUOTAS, *FILE_QUOTAS),
    "2.57": _set_class(*COMPUTE_QUOTAS),
}

_SWITCH: Schema = {
    "type": "string",
    "enum": ["enable", "disable", "Enable", "Disable", "ENABLE", "DISABLE"],
}
UPDATE_HOST = {
    "2.1": {
        **record({"status": _SWITCH, "maintenance_mode": _SWITCH}),
        "anyOf": [{"required": ["status"]}, {"required": ["maintenance_mode"]}],
    }
}
LIST_HOSTS = {"2.1": query({"zone": types.TEXT}, more=True)}

LIST_STORAGES = {
    "2.1": query(
        {"limit": one(types.LIMIT), "marker": one(types.TEXT), "host": one(types.TEXT)},
        more=False,
    )
}
HOST_TASKS = {"2.1": query({"limit": one(types.LIMIT)}, more=False)}
