"""Specs of profiles and policies: what they may hold, and the create that a profile stands for.

Facts from senlin/profiles/os/nova/server.py and senlin/policies.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from api import words
from api.clustering.call import Call
from api.compute import call as compute
from api.compute.links import Links
from api.compute.microversions import VERSIONS
from api.compute.resources.servers.create import create_request
from api.compute.schemas import servers as schemas
from api.query import Query
from common.errors import Invalid, NotFound, Unimplemented
from common.resources import health_checks
from common.resources.groups import DELETION_TYPE, HEALTH_TYPE, First, Repair
from conductor.rpc.servers.servers import CreateServers
from db.reads.groups import named
from web.schemas import versioned

SERVER_TYPE = "os.nova.server"
#: type → its versions, as documents name them
PROFILE_TYPES: Mapping[str, str] = {SERVER_TYPE: "1.0"}
POLICY_TYPES: Mapping[str, str] = {DELETION_TYPE: "1.1", HEALTH_TYPE: "1.2"}
#: Senlin's types that mean nothing here → why, in a sentence
ABSENT_POLICIES: Mapping[str, str] = {
    "senlin.policy.scaling": "A group is scaled by its actions and webhooks, which have a count.",
    "senlin.policy.affinity": "Name a server group in the profile's scheduler_hints.",
    "senlin.policy.zone_placement": "Give the cluster the option micronova.zones.",
    "senlin.policy.region_placement": "A group is in one region.",
    "senlin.policy.loadbalance": "There is no load balancer here.",
    "senlin.policy.batch": "Give the cluster the options micronova.max_surge and others.",
}
#: a profile's property → its name in the body of a create
_PLAIN: Mapping[str, str] = {
    "name": "name",
    "key_name": "key_name",
    "metadata": "metadata",
    "user_data": "user_data",
    "config_drive": "config_drive",
    "availability_zone": "availability_zone",
    "block_device_mapping_v2": "block_device_mapping_v2",
    "tags": "tags",
    "description": "description",
}
_OTHERS = ("flavor", "image", "networks", "security_groups", "scheduler_hints", "auto_disk_config")
PROPERTIES = frozenset({*_PLAIN, *_OTHERS})
_REFUSED: Mapping[str, str] = {
    "adminPass": "A password is one server's alone; use a key pair.",
    "admin_pass": "A password is one server's alone; use a key pair.",
    "personality": "Use user_data.",
    "context": "A profile is its maker's.",
}
_VALIDATE = versioned(schemas.CREATE, words.BODY)
_NEWEST = VERSIONS.newest
_PLACEHOLDER = "member"


def check_profile_type(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the properties of a profile's spec. Raises Unimplemented, Invalid."""
    kind = spec["type"]
    if kind not in PROFILE_TYPES:
        raise Unimplemented(f"Profiles of the type {kind} are not supported; {SERVER_TYPE} is.")
    if str(spec["version"]) != "1.0":
        raise Invalid(f"The version {spec['version']} of {kind} is not supported; 1.0 is.")
    properties: Mapping[str, Any] = spec.get("properties") or {}
    for name, sentence in _REFUSED.items():
        if name in properties:
            raise Invalid(f"The property {name} is not supported. {sentence}")
    unknown = sorted(set(properties) - PROPERTIES)
    if unknown:
        raise Invalid(f"Unrecognizable spec item '{unknown[0]}'")
    return properties


def create_of(call: Call, spec: Mapping[str, Any]) -> CreateServers:
    """Return the create of one server of a profile, checked as `POST /servers` checks it.

    What it names must exist, and its maker must be allowed to use it. Raises Invalid, Forbidden,
    Unimplemented.
    """
    properties = check_profile_type(spec)
    body = _body(call, properties)
    validate = _VALIDATE.at(_NEWEST)
    if validate is not None:
        validate(body)
    asked = compute.Call(
        cloud=call.cloud,
        ctxt=call.ctxt,
        version=_NEWEST,
        query=Query.parse(""),
        body=body,
        links=Links(""),
    )
    asked.check("servers:create", {"project_id": call.project, "user_id": call.ctxt.user_id})
    try:
        request = create_request(asked)
    except NotFound as error:
        raise Invalid(error.message, **error.details) from error
    name = str(properties.get("name") or "")
    named_networks = bool(properties.get("networks"))
    return dataclasses.replace(
        request, name=name, admin_password=None, needs_network=named_networks
    )


def _body(call: Call, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a create, with IDs in place of names."""
    server: dict[str, Any] = {
        there: properties[name]
        for name, there in _PLAIN.items()
        if properties.get(name) is not None
    }
    server.setdefault("name", _PLACEHOLDER)
    if properties.get("flavor") is None:
        raise Invalid("Required spec item 'flavor' not provided")
    server["flavorRef"] = _named(call, named.flavor, "flavor", properties["flavor"])
    if properties.get("image"):
        server["imageRef"] = _named(call, named.image, "image", properties["image"])
    server["networks"] = _networks(call, properties.get("networks"))
    groups = properties.get("security_groups") or []
    if not isinstance(groups, list):
        raise Invalid("The property security_groups must be a list.")
    if groups:
        server["security_groups"] = [{"name": one} for one in groups]
    if properties.get("auto_disk_config") is not None:
        server["OS-DCF:diskConfig"] = "AUTO" if properties["auto_disk_config"] else "MANUAL"
    body: dict[str, Any] = {"server": server}
    if properties.get("scheduler_hints"):
        body["os:scheduler_hints"] = properties["scheduler_hints"]
    return body


def _networks(call: Call, wanted: Any) -> Any:
    """Return the networks of each member: ports and addresses can't be several members'."""
    if not wanted:
        return "auto"
    if not isinstance(wanted, list):
        raise Invalid("The property networks must be a list.")
    found = []
    for one in wanted:
        if not isinstance(one, dict) or set(one) - {"network", "uuid"} or len(one) != 1:
            raise Invalid(
                "Each of the networks must be {'network': its name or ID}: a port or an address "
                "can be one server's only."
            )
        found.append({"uuid": _named(call, named.network, "network", next(iter(one.values())))})
    return found


def _named(call: Call, find: Callable[..., list[str]], noun: str, name: Any) -> str:
    found = call.read(find, str(name), call.reach)
    if not found:
        raise Invalid(f"The specified {noun} '{name}' could not be found.")
    if len(found) > 1:
        raise Invalid(f"More than one {noun} has the name '{name}': give its ID.")
    return found[0]


# --- policies


def check_policy(spec: Mapping[str, Any]) -> None:
    """Refuse a policy's spec unless it is well formed. Raises Unimplemented, Invalid."""
    kind = spec["type"]
    if kind in ABSENT_POLICIES:
        raise Unimplemented(
            f"Policies of the type {kind} are not supported. {ABSENT_POLICIES[kind]}"
        )
    check = _POLICIES.get(kind)
    if check is None:
        raise Invalid(f"The policy_type '{kind}-{spec['version']}' could not be found.")
    properties = spec.get("properties") or {}
    check(properties)


def _only(properties: Mapping[str, Any], *known: str) -> None:
    unknown = sorted(set(properties) - set(known))
    if unknown:
        raise Invalid(f"Unrecognizable spec item '{unknown[0]}'")


def _check_deletion(properties: Mapping[str, Any]) -> None:
    ignored = ("grace_period", "reduce_desired_capacity", "hooks")
    _only(properties, "criteria", "destroy_after_deletion", *ignored)
    if properties.get("hooks"):
        raise Unimplemented("Hooks before a deletion are not supported.")
    if properties.get("reduce_desired_capacity", True) is not True:
        raise Unimplemented("reduce_desired_capacity can't be false: the size is kept.")
    if properties.get("grace_period") not in (None, 0):
        raise Unimplemented("A grace_period before deletions is not supported.")
    names = [str(one) for one in First]
    if properties.get("criteria", First.RANDOM) not in names:
        raise Invalid(
            f"The value '{properties['criteria']}' for criteria must be one of {', '.join(names)}."
        )
    if not isinstance(properties.get("destroy_after_deletion", True), bool):
        raise Invalid("destroy_after_deletion must be true or false.")


#: detections that need no polling: the ledger has what happens to servers
_SEEN = (None, "NODE_STATUS_POLLING", "LIFECYCLE_EVENTS", "HYPERVISOR_STATUS_POLLING")
#: number of a detection → (least, most)
_DETECTION_LIMITS: Mapping[str, tuple[int, int]] = {
    "interval": (5, 3600),
    "node_update_timeout": (0, 86_400),
    "poll_url_retry_limit": (1, 20),
    "poll_url_retry_interval": (1, 3600),
}
_URL_OPTIONS = (
    *("poll_url", "poll_url_ssl_verify", "poll_url_conn_error_as_unhealthy"),
    *("poll_url_healthy_response", "poll_url_retry_limit", "poll_url_retry_interval"),
)


def _check_detection(detection: Mapping[str, Any]) -> None:
    known = ("interval", "node_update_timeout", "recovery_conditional", "detection_modes")
    # Of version 1.0: one type, with options.
    _only(detection, *known, "type", "options")
    _check_numbers(detection, "interval", "node_update_timeout")
    if detection.get("recovery_conditional", "ANY_FAILED") != "ANY_FAILED":
        raise Unimplemented(
            "recovery_conditional must be ANY_FAILED: one check that fails counts."
        )
    modes = detection.get("detection_modes") or [{"type": detection.get("type")}]
    if not isinstance(modes, list) or not all(isinstance(one, dict) for one in modes):
        raise Invalid("detection_modes must be a list of objects.")
    for one in modes:
        kind = one.get("type")
        if kind == health_checks.POLL_URL:
            _check_url(one.get("options"))
        elif kind not in _SEEN:
            raise Invalid(f"The type '{kind}' of a detection could not be found.")
    if sum(one.get("type") == health_checks.POLL_URL for one in modes) > 1:
        raise Unimplemented("One URL of a member is polled, not several.")


def _check_url(options: Any) -> None:
    if not isinstance(options, dict) or not isinstance(options.get("poll_url"), str):
        raise Invalid(f"{health_checks.POLL_URL} needs options with a poll_url.")
    _only(options, *_URL_OPTIONS)
    _check_numbers(options, "poll_url_retry_limit", "poll_url_retry_interval")
    for name in ("poll_url_ssl_verify", "poll_url_conn_error_as_unhealthy"):
        if not isinstance(options.get(name, True), bool):
            raise Invalid(f"{name} must be true or false.")
    try:
        health_checks.parsed(options["poll_url"], "x")
        health_checks.check_text(options.get("poll_url_healthy_response", ""))
    except ValueError as error:
        raise Invalid(str(error)) from error


def _check_numbers(given: Mapping[str, Any], *names: str) -> None:
    for name in names:
        least, most = _DETECTION_LIMITS[name]
        value = given.get(name, least)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise Invalid(f"{name} must be a number from {least} to {most}.")


def _check_health(properties: Mapping[str, Any]) -> None:
    _only(properties, "detection", "recovery")
    detection, recovery = properties.get("detection") or {}, properties.get("recovery") or {}
    if not isinstance(detection, dict) or not isinstance(recovery, dict):
        raise Invalid("detection and recovery must be objects.")
    _check_detection(detection)
    names = [str(one) for one in Repair]
    actions = recovery.get("actions", [])
    if not isinstance(actions, list):
        raise Invalid("The actions of a recovery must be a list.")
    for one in actions:
        if not isinstance(one, dict) or one.get("name") not in names:
            raise Invalid(f"Each action of a recovery must have a name of {', '.join(names)}.")
    if recovery.get("fencing"):
        raise Unimplemented("Fencing is not supported: no server is replaced before it is gone.")


_POLICIES: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
    DELETION_TYPE: _check_deletion,
    HEALTH_TYPE: _check_health,
}
