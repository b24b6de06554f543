"""Nova's versioned notifications: the payload of each, as plain values. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import ssl
from collections.abc import Callable, Mapping
from typing import Any

from common import clock
from common.resources import volumes
from conductor.notifications import events
from conductor.notifications.events import Payload
from conductor.notifications.subject import POWER, Subject, exception_name, moment
from conductor.notifications.subject import property_of as _property

#: {object: its version in Nova}; a test compares them with Nova's samples
VERSIONS: Mapping[str, str] = {
    "AggregatePayload": "1.1",
    "AuditPeriodPayload": "1.0",
    "BlockDevicePayload": "1.0",
    "ExceptionPayload": "1.1",
    "FlavorPayload": "1.4",
    Payload.ACTION: "1.9",
    Payload.REBUILD: "1.10",
    Payload.RESCUE: "1.4",
    Payload.RESIZE_PREP: "1.4",
    Payload.SNAPSHOT: "1.10",
    Payload.VOLUME: "1.7",
    Payload.CREATE: "1.13",
    Payload.EXISTS: "2.1",
    "InstanceStateUpdatePayload": "1.0",
    Payload.UPDATE: "2.1",
    "IpPayload": "1.0",
    "KeypairPayload": "1.0",
    "ServerGroupPayload": "1.1",
    "ServiceStatusPayload": "1.1",
}


def payload(subject: Subject) -> dict[str, Any]:
    """Return what a versioned notification carries.

    Raises ValueError, or another error of what can't be shown so.
    """
    if not events.of_server(subject.event):
        return shown(subject.body["kind"], subject.body["data"])
    kind = events.payload_of(subject.event)
    data = _instance(subject)
    if kind not in _WITHOUT_FAULT:
        data["fault"] = _fault(subject)
    data |= _MORE.get(kind, _nothing)(subject)
    return shown(kind, data)


def _nothing(_: Subject) -> dict[str, Any]:
    return {}


def shown(name: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object as Nova writes it."""
    return {
        "nova_object.name": str(name),
        "nova_object.namespace": "nova",
        "nova_object.version": VERSIONS[name],
        "nova_object.data": dict(data),
    }


def _instance(subject: Subject) -> dict[str, Any]:
    """Return the fields of InstancePayload."""
    server, context = subject.of, subject.context
    asked = context.get("project_id") and context.get("user_id")
    attached = subject.volumes
    return {
        "uuid": server["uuid"],
        "user_id": server["user_id"],
        "tenant_id": server["project_id"],
        "reservation_id": server["reservation_id"],
        "display_name": server["name"],
        "display_description": server["description"],
        "host_name": server["hostname"],
        "host": server["host"],
        "node": server["node"],
        "os_type": _property(server, "os_type"),
        "architecture": _property(server, "hw_architecture", "architecture"),
        "availability_zone": server["availability_zone"],
        "image_uuid": server["image_id"] or "",
        "key_name": server["key_name"],
        "kernel_id": "",
        "ramdisk_id": "",
        **{name: clock.iso(moment(server[name])) for name in _TIMES},
        "state": server["vm_state"],
        "power_state": POWER[server["power_state"]],
        "task_state": server["task_state"],
        "progress": 0,
        "metadata": dict(server["meta"] or {}),
        "locked": server["locked_by"] is not None,
        "auto_disk_config": "AUTO" if server["auto_disk_config"] else "MANUAL",
        "flavor": flavor(server["flavor"]),
        "ip_addresses": [_address(one) for one in server["addresses"] or ()],
        "block_devices": None if attached is None else [_device(one) for one in attached],
        "request_id": context.get("request_id") if asked else None,
        "action_initiator_user": context.get("user_id"),
        "action_initiator_project": context.get("project_id"),
        "locked_reason": server["locked_reason"],
        "shares": None,
    }


_TIMES = ("created_at", "launched_at", "terminated_at", "deleted_at", "updated_at")


def flavor(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return the payload of the flavor stored with a server."""
    return shown(
        "FlavorPayload",
        {
            "flavorid": kept["id"],
            "name": kept["name"],
            "memory_mb": kept["memory_mib"],
            "vcpus": kept["vcpus"],
            "root_gb": kept["disk_gib"],
            "ephemeral_gb": kept.get("ephemeral_gib", 0),
            "swap": kept.get("swap_mib", 0),
            "rxtx_factor": 1.0,
            "vcpu_weight": 0,
            "disabled": False,
            "is_public": kept.get("is_public", True),
            "extra_specs": dict(kept.get("extra_specs") or {}),
            "projects": kept.get("projects"),
            "description": kept.get("description"),
        },
    )


def _address(entry: Mapping[str, Any]) -> dict[str, Any]:
    return shown(
        "IpPayload",
        {
            "label": entry["network"],
            "mac": entry["mac"],
            "meta": {},
            "port_uuid": entry.get("port_id"),
            "version": entry["version"],
            "address": entry["ip"],
            "device_name": None,
        },
    )


def _device(one: Mapping[str, Any]) -> dict[str, Any]:
    return shown(
        "BlockDevicePayload",
        {
            "boot_index": 0 if one["slot"] == 0 else None,
            "delete_on_termination": bool(one["delete_on_termination"]),
            "device_name": volumes.device(one["slot"]),
            "tag": one["tag"],
            "volume_id": one["volume_id"],
        },
    )


def _fault(subject: Subject) -> dict[str, Any] | None:
    phase = events.parted(subject.event)[1]
    if phase != events.ERROR:
        return None
    fault = subject.fault
    text = (fault.message if fault else subject.failed) or "The operation failed."
    return shown(
        "ExceptionPayload",
        {
            "exception": exception_name(fault),
            "exception_message": text,
            "function_name": events.parted(subject.event)[0],
            "module_name": "micronova.conductor",
            "traceback": "",
        },
    )


def _create(subject: Subject) -> dict[str, Any]:
    server = subject.of
    return {
        "keypairs": _keypairs(server),
        "tags": list(server["tags"] or ()),
        "trusted_image_certificates": None,
        "instance_name": f"instance-{server['id']:08x}",
    }


def _keypairs(server: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the key pair that was given to the guest, if any."""
    name, key = server["key_name"], server["public_key"]
    if not name or not key:
        return []
    kind, digest = fingerprint(key)
    data = {"user_id": server["user_id"], "name": name, "public_key": key, "type": kind}
    return [shown("KeypairPayload", {**data, "fingerprint": digest})]


def fingerprint(key: str) -> tuple[str, str]:
    """Return the type of a key, ssh or x509, and its fingerprint, as the compute API shows it."""
    try:
        if key.startswith("-----BEGIN"):
            certificate = ssl.PEM_cert_to_DER_cert(key)
            return "x509", hashlib.sha1(certificate, usedforsecurity=False).digest().hex(":")
        blob = base64.b64decode(key.split()[1])
    except (ValueError, IndexError, binascii.Error):
        # It was checked when it was stored; a notification doesn't fail for it.
        return "ssh", ""
    return "ssh", hashlib.md5(blob, usedforsecurity=False).digest().hex(":")


def _resize(subject: Subject) -> dict[str, Any]:
    # A migration plans no other flavor.
    return {"new_flavor": flavor(subject.planned.get("new") or subject.of["flavor"])}


def _update(subject: Subject) -> dict[str, Any]:
    server, body = subject.of, subject.body
    states = body.get("state_update") or {
        "old_state": server["vm_state"],
        "state": server["vm_state"],
        "old_task_state": server["task_state"],
        "new_task_state": server["task_state"],
    }
    return {
        "state_update": shown("InstanceStateUpdatePayload", states),
        "audit_period": _audit_period(subject),
        "old_display_name": body.get("old_display_name"),
        "tags": list(server["tags"] or ()),
    }


def _audit_period(subject: Subject) -> dict[str, Any]:
    begins, ends = subject.audit_period
    return shown(
        "AuditPeriodPayload",
        {"audit_period_beginning": clock.iso(begins), "audit_period_ending": clock.iso(ends)},
    )


_WITHOUT_FAULT = frozenset({Payload.EXISTS, Payload.UPDATE})

_MORE: Mapping[Payload, Callable[[Subject], dict[str, Any]]] = {
    Payload.CREATE: _create,
    Payload.EXISTS: lambda subject: {"audit_period": _audit_period(subject)},
    Payload.REBUILD: lambda _: {"trusted_image_certificates": None},
    Payload.RESCUE: lambda subject: {"rescue_image_ref": subject.planned.get("image_id") or None},
    Payload.RESIZE_PREP: _resize,
    Payload.SNAPSHOT: lambda subject: {"snapshot_image_id": subject.planned.get("image_id")},
    Payload.UPDATE: _update,
    Payload.VOLUME: lambda subject: {"volume_id": subject.planned.get("volume_id")},
}
