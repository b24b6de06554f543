"""What hostile requests about groups name, and what they leave behind."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping
from typing import Any

from tests.functional.waiting import eventually

_KINDS = ("receivers", "clusters", "nodes", "profiles", "policies")
"""In the order in which they can be deleted."""
_FLAVOR, _NAME = "fuzz", "fuzz"
_POLICY = {
    "type": "senlin.policy.deletion",
    "version": "1.1",
    "properties": {"criteria": "OLDEST_FIRST"},
}
_RECOVERY = ("REBOOT", "REBUILD", "RECREATE")
_SECONDS = 120

_TEXT = {"type": "string"}
_FLAG = {"type": "boolean"}
_FEW = {"type": "integer", "minimum": 0, "maximum": 600}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


SPEC = {
    "type": "object",
    "properties": {
        "type": {
            "enum": [
                *("os.nova.server", "os.nova.server", "os.heat.stack"),
                *("senlin.policy.deletion", "senlin.policy.health", "senlin.policy.scaling"),
            ]
        },
        "version": {"enum": [1.0, "1.0", "1.1", "1.2", 9, "x"]},
        "properties": {
            "oneOf": [
                _object(
                    flavor={"enum": [_FLAVOR, "1", "nothing"]},
                    image=_TEXT,
                    name=_TEXT,
                    key_name=_TEXT,
                    metadata=_object(a=_TEXT),
                    networks={"type": "array", "items": _object(network=_TEXT, port=_TEXT)},
                    security_groups={"type": "array", "items": _TEXT},
                    user_data=_TEXT,
                    config_drive=_FLAG,
                    availability_zone={"enum": ["nova", "x"]},
                    scheduler_hints=_object(group=_TEXT),
                    block_device_mapping_v2={"type": "array", "items": _object(volume_size=_FEW)},
                ),
                _object(
                    criteria={"enum": ["OLDEST_FIRST", "YOUNGEST_FIRST", "RANDOM", "x"]},
                    destroy_after_deletion=_FLAG,
                    grace_period=_FEW,
                    reduce_desired_capacity=_FLAG,
                    hooks=_object(type=_TEXT),
                ),
                _object(
                    detection=_object(
                        interval=_FEW,
                        detection_modes={
                            "type": "array",
                            "items": _object(
                                type={"enum": ["NODE_STATUS_POLLING", "NODE_STATUS_POLL_URL"]},
                                options=_object(poll_url=_TEXT, poll_url_retry_limit=_FEW),
                            ),
                        },
                    ),
                    recovery=_object(
                        actions={
                            "type": "array",
                            "items": _object(
                                name={"enum": ["REBOOT", "REBUILD", "RECREATE", "x"]}
                            ),
                        },
                        node_delete_timeout=_FEW,
                        node_force_recreate=_FLAG,
                    ),
                ),
            ]
        },
    },
    "required": ["type", "version", "properties"],
}
"""Of a profile or of a policy, whose own properties the API's schema leaves to their type."""


def filled(schema: Any) -> Any:
    """Return the schema of a body with that of its specs."""
    if not isinstance(schema, Mapping):
        return schema
    found = {name: filled(part) for name, part in schema.items()}
    return found | ({"spec": SPEC} if "spec" in found else {})


def known(client: Any, image: str) -> dict[str, list[str]]:
    """Return {name in a path or a body: values}; makes some of them."""
    profile = {
        "type": "os.nova.server",
        "version": 1.0,
        "properties": {"flavor": _FLAVOR, "image": image, "name": _NAME},
    }
    for kind, spec in (("profile", profile), ("policy", _POLICY)):
        path = {"profile": "profiles", "policy": "policies"}[kind]
        client.post(f"/{path}", json={kind: {"name": _NAME, "spec": spec}})
    profiles = _ids(client, "profiles")
    if profiles:
        group = {"name": _NAME, "profile_id": profiles[-1], "desired_capacity": 1}
        client.post("/clusters", json={"cluster": group})
    found = {
        "profile_id": profiles,
        "policy_id": _ids(client, "policies"),
        "cluster_id": _ids(client, "clusters"),
        "node_id": _ids(client, "nodes"),
        "receiver_id": _ids(client, "receivers"),
        "action_id": _ids(client, "actions"),
        "event_id": _ids(client, "events"),
    }
    return found | {"policy": found["policy_id"], "image": [image]}


def clean(*clients: Any) -> list[str]:
    """Delete everything of some projects; return what remains, with the last answers."""
    refused: dict[str, str] = {}

    def empty() -> bool:
        refused.clear()
        # An administrator's groups may be of another project's profile.
        for kind, client in itertools.product(_KINDS, clients):
            for one in _ids(client, kind):
                refused[f"{kind} {one}"] = client.delete(f"/{kind}/{one}").text
        return not refused

    with contextlib.suppress(AssertionError):  # what remains is in the report
        eventually(empty, _SECONDS, 1)
    return [f"{one}: {text}" for one, text in refused.items()]


def _ids(client: Any, kind: str) -> list[str]:
    answer = client.get(f"/{kind}?limit=20&sort=created_at:desc")
    assert answer.status_code == 200, f"{kind}: {answer.status_code} {answer.text}"
    return [str(one["id"]) for one in answer.json()[kind]]
