"""Nova's older, unversioned notifications: event types and payloads, as plain values. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any

from common.guest.hardware import with_root_bus
from conductor.notifications import events
from conductor.notifications.subject import Subject, exception_name, moment
from conductor.notifications.subject import property_of as _property

_PREFIX = "compute.instance."

#: {part of a versioned one: that of the older one}, where they differ; None: there is none
_NAMES: Mapping[str, str | None] = {
    "interface_attach": None,
    "interface_detach": None,
    "live_migration_abort": "live.migration.abort",
    "live_migration_force_complete": "live.migration.force.complete",
    "live_migration_post": "live_migration._post",
    "live_migration_post_dest": "live_migration.post.dest",
    "live_migration_pre": "live_migration.pre",
    "live_migration_rollback": "live_migration._rollback",
    "lock": None,
    "rebuild_scheduled": "rebuild.scheduled",
    "resize_confirm": "resize.confirm",
    "resize_finish": "finish_resize",
    "resize_prep": "resize.prep",
    "resize_revert": "resize.revert",
    "unlock": None,
}
#: sent once, without a phase, at the end
_ONCE: Mapping[str, str] = {"volume_attach": "volume.attach", "volume_detach": "volume.detach"}


def event_type(event: str) -> str | None:
    """Return the older name of an event; None where Nova has none."""
    if not events.of_server(event):
        return None
    part, phase = events.parted(event)
    if part in _ONCE:
        return f"{_PREFIX}{_ONCE[part]}" if phase == "end" else None
    name = _NAMES.get(part, part)
    if name is None:
        return None
    return f"{_PREFIX}{name}.{phase}" if phase else f"{_PREFIX}{name}"


def payload(subject: Subject) -> dict[str, Any]:
    """Return what an unversioned notification carries."""
    server = subject.of
    flavor = server["flavor"]
    root, ephemeral = flavor["disk_gib"], flavor.get("ephemeral_gib", 0)
    created = moment(server["created_at"])
    return {
        "tenant_id": server["project_id"],
        "user_id": server["user_id"],
        "instance_id": server["uuid"],
        "display_name": server["name"],
        "reservation_id": server["reservation_id"],
        "hostname": server["hostname"],
        "instance_type": flavor["name"],
        # Nova's number of the flavor in its database.
        "instance_type_id": flavor["id"],
        "instance_flavor_id": flavor["id"],
        "architecture": _property(server, "hw_architecture", "architecture"),
        "memory_mb": flavor["memory_mib"],
        "disk_gb": root + ephemeral,
        "vcpus": flavor["vcpus"],
        "root_gb": root,
        "ephemeral_gb": ephemeral,
        "host": server["host"],
        "node": server["node"],
        "availability_zone": server["availability_zone"],
        "cell_name": "",
        "created_at": "" if created is None else str(created.replace(microsecond=0)),
        **{name: _time(server[name]) for name in ("terminated_at", "deleted_at", "launched_at")},
        "os_type": _property(server, "os_type"),
        "kernel_id": "",
        "ramdisk_id": "",
        "state": server["vm_state"],
        "state_description": server["task_state"] or "",
        "progress": "",
        "access_ip_v4": server["access_ip_v4"],
        "access_ip_v6": server["access_ip_v6"],
        "fixed_ips": [_address(one) for one in server["addresses"] or ()],
        **_image(server),
        "metadata": dict(server["meta"] or {}),
        **_more(subject),
    }


def _image(of: Mapping[str, Any]) -> dict[str, Any]:
    image_id = of["image_id"] or ""
    properties = with_root_bus(of["image_properties"] or {}, None)
    # As an URL, Nova's own answer where it doesn't know the image service's address.
    return {
        "image_ref_url": image_id,
        "image_meta": {**properties, "base_image_ref": image_id},
    }


def _time(value: datetime.datetime | str | None) -> str:
    """Return a time in the form of ``nova.utils.strtime``."""
    found = moment(value)
    return "" if found is None else found.strftime("%Y-%m-%dT%H:%M:%S.%f")


def _address(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "address": entry["ip"],
        "type": "fixed",
        "version": entry["version"],
        "meta": {},
        "floating_ips": [],
        "label": entry["network"],
        "vif_mac": entry["mac"],
    }


def _more(subject: Subject) -> dict[str, Any]:
    """Return what this event has besides."""
    part, phase = events.parted(subject.event)
    if phase == events.ERROR:
        text = (subject.fault.message if subject.fault else subject.failed) or ""
        return {"message": text, "code": 500, "exception": exception_name(subject.fault)}
    more = _MORE.get((part, phase))
    return {} if more is None else more(subject)


def _exists(subject: Subject) -> dict[str, Any]:
    begins, ends = subject.audit_period
    # A rebuild's server has the new image already, but this reports the image before:
    # nova.compute.manager, _do_rebuild_instance.
    former = subject.planned.get("former")
    return {
        **(_image(former) if former else {}),
        # Nova formats these times differently from the others.
        "audit_period_beginning": str(begins.replace(tzinfo=None)),
        "audit_period_ending": str(ends.replace(tzinfo=None)),
    }


def _resize_prep(subject: Subject) -> dict[str, Any]:
    # A migration plans no other flavor.
    flavor = subject.planned.get("new") or subject.of["flavor"]
    return {"new_instance_type": flavor["name"], "new_instance_type_id": flavor["id"]}


def _image_name(subject: Subject) -> str:
    """Return the name of the image that is used, empty until it is in the plan."""
    return str((subject.planned.get("image") or {}).get("name") or "")


def _update(subject: Subject) -> dict[str, Any]:
    server, body = subject.of, subject.body
    begins, ends = subject.audit_period
    old_name = body.get("old_display_name")
    return {
        "old_state": server["vm_state"],
        "old_task_state": server["task_state"],
        "new_task_state": server["task_state"],
        **(body.get("state_update") or {}),
        "audit_period_beginning": _time(begins),
        "audit_period_ending": _time(ends),
        **({"old_display_name": old_name} if old_name else {}),
    }


def _with_image(subject: Subject) -> dict[str, Any]:
    return {"image_name": _image_name(subject)}


def _rescue(subject: Subject) -> dict[str, Any]:
    return {"rescue_image_name": _image_name(subject)}


def _volume(subject: Subject) -> dict[str, Any]:
    return {"volume_id": subject.planned.get("volume_id")}


#: {part and phase: what gives what it has besides}
_MORE: Mapping[tuple[str, str | None], Callable[[Subject], dict[str, Any]]] = {
    ("create", "start"): _with_image,
    ("create", "end"): lambda _: {"message": "Success"},
    ("exists", None): _exists,
    ("rebuild", "start"): _with_image,
    ("rebuild", "end"): _with_image,
    ("rescue", "start"): _rescue,
    ("rescue", "end"): _rescue,
    ("resize_prep", "end"): _resize_prep,
    ("update", None): _update,
    ("volume_attach", "end"): _volume,
    ("volume_detach", "end"): _volume,
}
