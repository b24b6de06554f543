"""Schemas of bodies; facts from senlin/objects/requests."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_LONG_NAME: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "pattern": r"^[^\x00]*\S[^\x00]*$",
}
#: of clusters and nodes, whose servers and volumes have longer ones
_NAME: Schema = {**_LONG_NAME, "maxLength": 200}
_NAME_OR_NONE: Schema = {**_NAME, "type": ["string", "null"]}
_LONG_NAME_OR_NONE: Schema = {**_LONG_NAME, "type": ["string", "null"]}
_REFERENCE: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
_REFERENCE_OR_NONE: Schema = {**_REFERENCE, "type": ["string", "null"]}
_OBJECT: Schema = {"type": ["object", "null"], "maxProperties": 128}
_NUMBER: Schema = {
    "type": ["integer", "string", "null"],
    "pattern": "^-?[0-9]{1,9}$",
    "minimum": -1,
    "maximum": 999_999_999,
}
_BOOLEAN: Schema = {
    "type": ["boolean", "string", "null"],
    "enum": [True, False, None, "true", "false", "True", "False"],
}
_SPEC: Schema = {
    "type": "object",
    "properties": {
        "type": _REFERENCE,
        "version": {"type": ["string", "number"]},
        "properties": {"type": "object"},
        "description": {},
    },
    "required": ["type", "version"],
    "additionalProperties": False,
}


def _record(
    name: str, required: tuple[str, ...] = (), kind: Any = "object", /, **properties: Schema
) -> dict[str, Schema | None]:
    inner = {
        "type": kind,
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return {
        "1.0": {
            "type": "object",
            "properties": {name: inner},
            "required": [name],
            "additionalProperties": False,
        }
    }


def _parameters(name: str) -> dict[str, Schema | None]:
    """Return the schema of an action whose parameters make no difference."""
    inner: Schema = {"type": ["object", "null"]}
    return {"1.0": {"type": "object", "properties": {name: inner}}}


PROFILE = _record(
    "profile",
    ("name", "spec"),
    name=_LONG_NAME,
    spec=_SPEC,
    metadata=_OBJECT,
    description=_LONG_NAME_OR_NONE,
)
PROFILE_SPEC = _record("profile", ("spec",), spec=_SPEC, name=_LONG_NAME_OR_NONE, metadata=_OBJECT)
PROFILE_UPDATE = _record("profile", name=_LONG_NAME_OR_NONE, metadata=_OBJECT)
CLUSTER = _record(
    "cluster",
    ("name", "profile_id"),
    name=_NAME,
    profile_id=_REFERENCE,
    min_size=_NUMBER,
    max_size=_NUMBER,
    desired_capacity=_NUMBER,
    timeout=_NUMBER,
    metadata=_OBJECT,
    config=_OBJECT,
)
CLUSTER_UPDATE = _record(
    "cluster",
    name=_NAME_OR_NONE,
    profile_id=_REFERENCE_OR_NONE,
    profile_only=_BOOLEAN,
    timeout=_NUMBER,
    metadata=_OBJECT,
    config=_OBJECT,
)
_COUNT: Schema = {**_NUMBER, "pattern": "^[0-9]{1,9}$", "minimum": 0}
RESIZE = _record(
    "resize",
    adjustment_type={
        "enum": ["EXACT_CAPACITY", "CHANGE_IN_CAPACITY", "CHANGE_IN_PERCENTAGE", None]
    },
    number={"type": ["number", "null"], "minimum": -1e6, "maximum": 1e6},
    min_size=_NUMBER,
    max_size=_NUMBER,
    min_step=_COUNT,
    strict=_BOOLEAN,
)
SCALE_OUT = _record("scale_out", count=_COUNT)
SCALE_IN = _record("scale_in", count=_COUNT)
_NODES: Schema = {"type": "array", "items": _REFERENCE, "minItems": 1, "maxItems": 1000}
ADD_NODES = _record("add_nodes", ("nodes",), nodes=_NODES)
DEL_NODES = _record("del_nodes", ("nodes",), nodes=_NODES, destroy_after_deletion=_BOOLEAN)
REPLACE_NODES = _record(
    "replace_nodes",
    ("nodes",),
    nodes={
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1000,
        "additionalProperties": _REFERENCE,
    },
)
CHECK, PAUSE, GO_ON, ROLL_BACK = map(
    _parameters, ("check", "micronova:pause", "micronova:resume", "micronova:roll_back")
)
_OPERATION: Schema = {"type": ["string", "null"], "maxLength": 255}
RECOVER = _record(
    "recover",
    (),
    ["object", "null"],
    check=_BOOLEAN,
    check_capacity=_BOOLEAN,
    operation=_OPERATION,
    operation_params=_OBJECT,
)
RECOVER_NODE = _record(
    "recover",
    (),
    ["object", "null"],
    check=_BOOLEAN,
    operation=_OPERATION,
    operation_params=_OBJECT,
    delete_timeout=_NUMBER,
    force_recreate=_BOOLEAN,
)
POLICY_ATTACH = _record("policy_attach", ("policy_id",), policy_id=_REFERENCE, enabled=_BOOLEAN)
POLICY_UPDATE = _record("policy_update", ("policy_id",), policy_id=_REFERENCE, enabled=_BOOLEAN)
POLICY_DETACH = _record("policy_detach", ("policy_id",), policy_id=_REFERENCE)
DELETE_OWN = _record("micronova:delete", keep=_BOOLEAN)
NODE = _record(
    "node",
    ("name", "profile_id"),
    name=_NAME,
    profile_id=_REFERENCE,
    cluster_id=_REFERENCE_OR_NONE,
    role={"type": ["string", "null"], "maxLength": 255},
    metadata=_OBJECT,
)
NODE_UPDATE = _record(
    "node",
    name=_NAME_OR_NONE,
    profile_id=_REFERENCE_OR_NONE,
    role={"type": ["string", "null"], "maxLength": 255},
    metadata=_OBJECT,
    tainted=_BOOLEAN,
)
POLICY = _record("policy", ("name", "spec"), name=_LONG_NAME, spec=_SPEC)
POLICY_SPEC = _record("policy", ("spec",), spec=_SPEC, name=_LONG_NAME_OR_NONE)
POLICY_RENAME = _record("policy", ("name",), name=_LONG_NAME)
_PARAMS: Schema = {
    "type": ["object", "null"],
    "properties": {"count": _COUNT},
    "additionalProperties": False,
}
RECEIVER = _record(
    "receiver",
    ("name", "type"),
    name=_LONG_NAME,
    type={"enum": ["webhook", "message"]},
    cluster_id=_REFERENCE_OR_NONE,
    action=_REFERENCE_OR_NONE,
    params=_PARAMS,
    actor=_OBJECT,
)
RECEIVER_UPDATE = _record(
    "receiver", name=_LONG_NAME_OR_NONE, action=_REFERENCE_OR_NONE, params=_PARAMS
)
ACTION_UPDATE = _record("action", ("status",), status={"enum": ["CANCELLED"]})
QUOTA = _record("quota", ("groups",), groups={**_NUMBER, "type": ["integer", "string"]})
