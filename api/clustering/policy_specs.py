"""Specs of policies: what they may hold. Facts from senlin/policies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from common.errors import Invalid, Unimplemented
from common.resources import health_checks
from common.resources.groups import DELETION_TYPE, HEALTH_TYPE, First, Repair

#: type → its newest version
POLICY_TYPES: Mapping[str, str] = {DELETION_TYPE: "1.1", HEALTH_TYPE: "1.2"}
_POLICY_VERSIONS: Mapping[str, Collection[str]] = {
    DELETION_TYPE: ("1.0", "1.1"),
    HEALTH_TYPE: ("1.0", "1.1", "1.2"),
}
#: Senlin's types that mean nothing here → why, in a sentence
ABSENT_POLICIES: Mapping[str, str] = {
    "senlin.policy.scaling": "A group is scaled by its actions and webhooks, which have a count.",
    "senlin.policy.affinity": "Name a server group in the profile's scheduler_hints.",
    "senlin.policy.zone_placement": "Give the cluster the option micronova.zones.",
    "senlin.policy.region_placement": "A group is in one region.",
    "senlin.policy.loadbalance": "There is no load balancer here.",
    "senlin.policy.batch": "Give the cluster the options micronova.max_surge and others.",
}


def check_policy(spec: Mapping[str, Any]) -> None:
    """Refuse a policy's spec unless it is well formed. Raises Unimplemented, Invalid."""
    kind = spec["type"]
    if kind in ABSENT_POLICIES:
        raise Unimplemented(
            f"Policies of the type {kind} are not supported. {ABSENT_POLICIES[kind]}"
        )
    check = _POLICIES.get(kind)
    if check is None or str(spec["version"]) not in _POLICY_VERSIONS[kind]:
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
    hooks, grace = properties.get("hooks") or {}, properties.get("grace_period") or 0
    if not isinstance(hooks, dict) or not isinstance(grace, int):
        raise Invalid("hooks must be an object, and grace_period a number.")
    _check_truths(properties, "destroy_after_deletion", "reduce_desired_capacity")
    if hooks:
        raise Unimplemented("Hooks before a deletion are not supported.")
    if properties.get("reduce_desired_capacity") is False:
        raise Unimplemented("reduce_desired_capacity can't be false: the size is kept.")
    if grace:
        raise Unimplemented("A grace_period before deletions is not supported.")
    names = [str(one) for one in First]
    if properties.get("criteria", First.RANDOM) not in names:
        raise Invalid(
            f"The value '{properties['criteria']}' for criteria must be one of {', '.join(names)}."
        )


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
    _check_truths(options, "poll_url_ssl_verify", "poll_url_conn_error_as_unhealthy")
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


def _check_truths(given: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if not isinstance(given.get(name, True), bool):
            raise Invalid(f"{name} must be true or false.")


def _check_health(properties: Mapping[str, Any]) -> None:
    _only(properties, "detection", "recovery")
    detection, recovery = properties.get("detection") or {}, properties.get("recovery") or {}
    if not isinstance(detection, dict) or not isinstance(recovery, dict):
        raise Invalid("detection and recovery must be objects.")
    _check_detection(detection)
    _only(recovery, "actions", "fencing", *_SURELY_GONE)
    actions = recovery.get("actions", [])
    if not isinstance(actions, list):
        raise Invalid("The actions of a recovery must be a list.")
    for one in actions:
        _check_repair(one)
    if recovery.get("fencing"):
        raise Unimplemented("Fencing is not supported: no server is replaced before it is gone.")
    for name, default in _SURELY_GONE.items():
        value = recovery.get(name, default)
        if not isinstance(value, type(default)):
            raise Invalid(f"{name} must be like {default}.")
        if value != default:
            raise Unimplemented(
                f"{name} is not supported: a node gets another server once its former one is "
                "seen gone."
            )


def _check_repair(action: Any) -> None:
    """Refuse an action of a recovery unless it is supported."""
    names = [str(one) for one in Repair]
    if not isinstance(action, dict) or action.get("name") not in names:
        raise Invalid(f"Each action of a recovery must have a name of {', '.join(names)}.")
    _only(action, "name", "params")
    name, params = action["name"], action.get("params") or {}
    if params and (name, params) != (Repair.REBOOT, {"type": "HARD"}):
        raise Unimplemented(
            f"Parameters of {name} in a recovery are not supported; servers are restarted hard."
        )


#: what of a recovery says how to go on before a server is gone → Senlin's default
_SURELY_GONE: Mapping[str, Any] = {"node_delete_timeout": 20, "node_force_recreate": False}
_POLICIES: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
    DELETION_TYPE: _check_deletion,
    HEALTH_TYPE: _check_health,
}
