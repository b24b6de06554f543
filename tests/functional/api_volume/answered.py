"""One request of each operation of the Block Storage API, and the schema of what Cinder answers.

Tempest has a schema of most; those of others, and the fields that Tempest's leave out, are after
the views of Cinder (cinder/api/views, cinder/api/v3/views).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from api.volume.resources import absent, volume_actions
from common import ids
from common.messages.facts import StorageFacts
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import uuid_of
from tests.fixtures.listings import NOW, Row
from tests.fixtures.volumes import a_volume, an_attachment, volume_id
from tests.functional.api_compute.test_ledger import an_operation
from tests.functional.api_volume.conftest import VolumeApi

PROJECT, USER, OTHER = ("0" * 31 + number for number in "123")
ADMIN = auth.token(USER, PROJECT, "admin", "manager", "member", "reader")
MEMBER = auth.token(USER, PROJECT)
THEIRS = auth.token(OTHER, OTHER)

FREE, HAD, OFFERED, PLAIN, RESERVED = range(20, 25)
SNAPSHOT, TRANSFER, BACKUP, TYPE, PRIVATE = (
    ids.named("of the answers", str(number)) for number in range(5)
)
KEY = "auth key"
ATTACHMENT, MESSAGE = ids.named("attachment", str(HAD)), ids.numbered("volume_message", 1)
SAFE = StorageFacts("safe", "nfs", True, True, 1000, 900, ("backup",))


def _mine(row: Row, **changes: Any) -> Row:
    table, values = row
    own = {"project_id": PROJECT, "user_id": USER}
    return table, {**values, **{k: v for k, v in own.items() if k in table.c}, **changes}


def _type(type_id: str, name: str, **changes: Any) -> Row:
    values = {"id": type_id, "name": name, "storage": "data", "created_at": NOW, "description": ""}
    specs = {"storage:type": "rbd", "own": "x"}
    return schema.volume_types, {**values, "extra_specs": specs, **changes}


def rows() -> Sequence[Row]:
    """Return what there is besides."""
    common = {"created_at": NOW, "meta": {"a": "b"}, "size_gib": 1, "status": "available"}
    where = {"host": "pve1", "cluster": "c1", "node": "pve1", "storage": "data", "shared": True}
    image = {"image_metadata": {"os_type": "linux"}, "meta": {"a": "b"}}
    snapshot = {**common, "id": SNAPSHOT, "volume_id": volume_id(FREE), "name": "snap"}
    snapshot |= {"snapname": "snap"}
    backup = {**common, **where, "id": BACKUP, "volume_id": volume_id(FREE), "storage": "safe"}
    backup |= {"archive": "safe:backup/x.vma.zst", "data_timestamp": NOW, "vmid": 200_020}
    sealed = hmac.new(b"salt", KEY.encode(), hashlib.sha256).hexdigest()
    offer = {"id": TRANSFER, "volume_id": volume_id(OFFERED), "salt": "salt", "key_hash": sealed}
    offer |= {"source_project_id": PROJECT, "no_snapshots": False, "accepted": False}
    failed = {"resource_type": "volume", "resource_id": volume_id(FREE), "action": "extend-volume"}
    fault = {"server_uuid": "", "operation_id": 1, "request_id": f"req-{uuid_of(91)}"}
    fault |= {"attempt": 1, "code": 500, "category": "lock", "message": "Locked.", "cleaned": []}
    fault |= {"log_tail": [], "left": [], "created_at": NOW}
    return (
        _mine(a_volume(FREE, type_id=TYPE, snapshot_way="online", **image)),
        _mine(a_volume(RESERVED, status="attaching")),
        _mine(a_volume(PLAIN)),
        _mine(a_volume(HAD, status="in-use")),
        _mine(a_volume(OFFERED, status="awaiting-transfer")),
        _mine(an_attachment(HAD)),
        _mine((schema.volume_snapshots, snapshot)),
        _mine((schema.volume_backups, backup)),
        (schema.volume_transfers, {**offer, "name": None, "created_at": NOW}),
        _type(TYPE, "one"),
        _type(PRIVATE, "two", is_public=False),
        (schema.volume_type_access, {"type_id": PRIVATE, "project_id": PROJECT}),
        _mine(an_operation(1, f"req-{uuid_of(91)}", state="failed", **failed)),
        (schema.faults, fault),
        (schema.volume_default_types, {"project_id": PROJECT, "type_id": TYPE}),
        (schema.vmid_bands, {"cluster": "c1", "low": 3000, "high": 3999, "next": 3000}),
        (schema.vmid_bands, {"cluster": "sim1", "low": 4000, "high": 4999, "next": 4000}),
    )


Body = Any | Callable[[int], Any]
Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Ask:
    """A request and what Cinder answers it with."""

    answer: str | Schema | None
    """The name of Tempest's schema, a schema, or None for no body."""
    body: Any = None
    params: Mapping[str, str] = field(default_factory=dict)
    query: str = ""
    token: str = ADMIN
    later: Mapping[str, int] = field(default_factory=dict)
    """Fields that Tempest's schema leaves out → since which version 3.x Cinder has them."""
    status: int | None = None
    """Where Tempest's schema doesn't say, or is another operation's."""


PARAMS: Mapping[str, str] = {
    "volume_id": volume_id(FREE),
    "key": "a",
    "attachment_id": ATTACHMENT,
    "snapshot_id": SNAPSHOT,
    "transfer_id": TRANSFER,
    "backup_id": BACKUP,
    "type_id": TYPE,
    "project_id": PROJECT,
    "class_name": "default",
    "name": "disable",
    "host": "pve1",
    "alias": "backups",
    "message_id": MESSAGE,
    "record_id": MESSAGE,
}


def record(**fields: Any) -> Schema:
    """Return the schema of an object with exactly these fields."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def many(name: str, item: Any) -> Schema:
    """Return the schema of a list."""
    return record(**{name: {"type": "array", "items": item}})


_TEXT, _NUMBER, _FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
_MAYBE = {"type": ["string", "null"]}
_OBJECT = {"type": "object"}
_BRIEF_ATTACHMENT = {"id": _TEXT, "status": _TEXT, "instance": _TEXT, "volume_id": _TEXT}
_ATTACHMENT = record(
    **_BRIEF_ATTACHMENT,
    attached_at=_TEXT,
    detached_at=_TEXT,
    attach_mode=_TEXT,
    connection_info=_OBJECT,
)
_DEFAULT = record(project_id=_TEXT, volume_type_id=_TEXT)
_RESOURCE_FILTER = record(resource=_TEXT, filters={"type": "array", "items": _TEXT})
_ZONE = record(zoneName=_TEXT, zoneState=record(available=_FLAG))
_EXTENSION = record(name=_TEXT, alias=_TEXT, description=_TEXT, updated=_TEXT, links={})
_TRANSFER = "transfers."
_SERVICE = {"host": "pve1", "binary": "cinder-volume"}
_SNAPSHOT_SINCE = {"group_snapshot_id": 14, "user_id": 41, "consumes_quota": 65}
_COUNT = {"count": 45}
_ACTION = "POST /volumes/{}/action"
_META = {"metadata": {"a": "c"}}
_ITEM = {"meta": {"a": "d"}}
_OF_PLAIN = {"volume_id": volume_id(PLAIN)}
_OF_PRIVATE = {"type_id": PRIVATE}
_OF_SPECS = {"type_id": PRIVATE, "key": "storage:type"}


def _volume(name: str, body: Any = None, **more: Any) -> Ask:
    return Ask(f"volumes.{name}", body, **more)


def _metadata(of: str, path: str) -> Mapping[str, Ask]:
    return {
        f"GET {path}/metadata": Ask(f"{of}s.show_{of}_metadata"),
        f"POST {path}/metadata": Ask(f"{of}s.create_{of}_metadata", _META),
        f"PUT {path}/metadata": Ask(f"{of}s.update_{of}_metadata", _META),
        f"GET {path}/metadata/{{}}": Ask(f"{of}s.show_{of}_metadata_item"),
        f"PUT {path}/metadata/{{}}": Ask(f"{of}s.update_{of}_metadata_item", _ITEM),
        f"DELETE {path}/metadata/{{}}": Ask(f"{of}s.delete_{of}_metadata_item"),
    }


def _transfers(path: str) -> Mapping[str, Ask]:
    offer = {"transfer": {"volume_id": volume_id(PLAIN), "name": "offer"}}
    return {
        f"GET {path}": Ask(f"{_TRANSFER}list_volume_transfers_no_detail"),
        f"GET {path}/detail": Ask(f"{_TRANSFER}list_volume_transfers_with_detail"),
        f"GET {path}/{{}}": Ask(f"{_TRANSFER}show_volume_transfer"),
        f"POST {path}": Ask(f"{_TRANSFER}create_volume_transfer", offer),
        f"POST {path}/{{}}/accept": Ask(
            f"{_TRANSFER}accept_volume_transfer", {"accept": {"auth_key": KEY}}, token=THEIRS
        ),
        f"DELETE {path}/{{}}": Ask(f"{_TRANSFER}delete_volume_transfer"),
    }


_UPLOADED = record(
    **{
        "os-volume_upload_image": {
            "type": "object",
            "properties": {
                **{"id": _TEXT, "updated_at": _MAYBE, "status": _TEXT, "size": _NUMBER},
                **{"display_description": _MAYBE, "image_id": _TEXT, "container_format": _TEXT},
                **{"disk_format": _TEXT, "image_name": _TEXT, "volume_type": {}},
                **{"protected": _FLAG, "visibility": _TEXT},
            },
            "required": ["id", "status", "image_id", "image_name", "volume_type", "size"],
            "additionalProperties": False,
        }
    }
)
_ACTIONS: Mapping[str, Ask] = {
    "os-extend": _volume("extend_volume", {"new_size": 2}, params=_OF_PLAIN),
    "os-reserve": _volume("reserve_volume"),
    "os-unreserve": _volume("unreserve_volume", params={"volume_id": volume_id(RESERVED)}),
    "os-set_bootable": _volume("set_bootable_volume", {"bootable": True}),
    "os-update_readonly_flag": _volume("update_volume_readonly", {"readonly": False}),
    "os-reset_status": _volume("reset_volume_status", {"status": "available"}),
    "os-force_delete": _volume("force_delete_volume", params=_OF_PLAIN),
    "os-show_image_metadata": _volume("show_volume_image_metadata"),
    "os-set_image_metadata": _volume(
        "update_volume_image_metadata", {"metadata": {"os_type": "linux"}}
    ),
    "os-unset_image_metadata": _volume("delete_volume_image_metadata", {"key": "os_type"}),
    "os-retype": _volume(
        "retype_volume",
        {"new_type": "one", "migration_policy": "never"},
        params=_OF_PLAIN,
    ),
    "os-volume_upload_image": Ask(_UPLOADED, {"image_name": "x"}, params=_OF_PLAIN, status=202),
    "revert": Ask(None, {"snapshot_id": SNAPSHOT}, status=202),
}

REQUESTS: Mapping[str, Ask] = {
    "GET /volumes": _volume("list_volumes_no_detail", later=_COUNT, query="?with_count=1"),
    "GET /volumes/detail": _volume(
        "list_volumes_with_detail", later=_COUNT, query="?with_count=1"
    ),
    "GET /volumes/summary": _volume("show_volume_summary"),
    "POST /volumes": _volume("create_volume", {"volume": {"size": 1, "name": "new"}}),
    "GET /volumes/{}": _volume("show_volume"),
    # Tempest's own of later versions leave out what Cinder's view shows in both.
    "PUT /volumes/{}": _volume("create_volume", {"volume": {"name": "other"}}, status=200),
    "DELETE /volumes/{}": _volume("delete_volume", params=_OF_PLAIN),
    "GET /volumes/{}/encryption": Ask(record(encryption_key_id=_MAYBE)),
    **_metadata("volume", "/volumes/{}"),
    **{f"{_ACTION} {name}": ask for name, ask in _ACTIONS.items()},
    "GET /attachments": Ask(many("attachments", record(**_BRIEF_ATTACHMENT))),
    "GET /attachments/detail": Ask(many("attachments", _ATTACHMENT)),
    "GET /attachments/{}": Ask(record(attachment=_ATTACHMENT)),
    "GET /snapshots": Ask(
        "snapshots.list_snapshots_no_detail", later=_COUNT, query="?with_count=1"
    ),
    "GET /snapshots/detail": Ask(
        "snapshots.list_snapshots_with_detail",
        later={**_SNAPSHOT_SINCE, **_COUNT},
        query="?with_count=1",
    ),
    "POST /snapshots": Ask(
        "snapshots.create_snapshot",
        {"snapshot": {"volume_id": volume_id(FREE), "name": "new"}},
        later=_SNAPSHOT_SINCE,
    ),
    "GET /snapshots/{}": Ask("snapshots.show_snapshot", later=_SNAPSHOT_SINCE),
    "PUT /snapshots/{}": Ask(
        "snapshots.update_snapshot", {"snapshot": {"name": "other"}}, later=_SNAPSHOT_SINCE
    ),
    "DELETE /snapshots/{}": Ask("snapshots.delete_snapshot"),
    **_metadata("snapshot", "/snapshots/{}"),
    "POST /snapshots/{}/action os-reset_status": Ask(
        "snapshots.reset_snapshot_status", {"status": "available"}
    ),
    "POST /snapshots/{}/action os-force_delete": Ask("snapshots.force_delete_snapshot"),
    **_transfers("/os-volume-transfer"),
    **_transfers("/volume-transfers"),
    "GET /backups": Ask("backups.list_backups_no_detail", later=_COUNT, query="?with_count=1"),
    "GET /backups/detail": Ask(
        "backups.list_backups_with_detail", later=_COUNT, query="?with_count=1"
    ),
    "POST /backups": Ask(
        "backups.create_backup", {"backup": {"volume_id": volume_id(PLAIN), "name": "new"}}
    ),
    "GET /backups/{}": Ask("backups.show_backup"),
    "PUT /backups/{}": Ask("backups.update_backup", {"backup": {"name": "other"}}),
    "DELETE /backups/{}": Ask("backups.delete_backup"),
    "POST /backups/{}/restore": Ask("backups.restore_backup", {"restore": {}}),
    "POST /backups/{}/action os-reset_status": Ask(
        "backups.reset_backup_status", {"status": "available"}
    ),
    "POST /backups/{}/action os-force_delete": Ask("backups.delete_backup"),
    "GET /types": Ask("volume_types.list_volume_types"),
    "POST /types": Ask("volume_types.create_volume_type", {"volume_type": {"name": "new"}}),
    "GET /types/{}": Ask("volume_types.show_volume_type"),
    "PUT /types/{}": Ask("volume_types.update_volume_types", {"volume_type": {"name": "other"}}),
    "DELETE /types/{}": Ask("volume_types.delete_volume_type", params=_OF_PRIVATE),
    "GET /types/{}/os-volume-type-access": Ask(
        "volume_types.list_type_access", params=_OF_PRIVATE
    ),
    "POST /types/{}/action addProjectAccess": Ask(
        "volume_types.add_type_access", {"project": OTHER}, params=_OF_PRIVATE
    ),
    "POST /types/{}/action removeProjectAccess": Ask(
        "volume_types.remove_type_access", {"project": PROJECT}, params=_OF_PRIVATE
    ),
    "GET /types/{}/encryption": Ask("encryption_types.show_encryption_type"),
    "GET /types/{}/extra_specs": Ask("volume_types.list_volume_types_extra_specs"),
    "POST /types/{}/extra_specs": Ask(
        "volume_types.create_volume_types_extra_specs",
        {"extra_specs": {"b": "c"}},
        params=_OF_PRIVATE,
    ),
    "GET /types/{}/extra_specs/{}": Ask(
        "volume_types.show_volume_types_extra_specs", params=_OF_SPECS
    ),
    "PUT /types/{}/extra_specs/{}": Ask(
        "volume_types.update_volume_type_extra_specs", {"storage:type": "y"}, params=_OF_SPECS
    ),
    "DELETE /types/{}/extra_specs/{}": Ask(
        "volume_types.delete_volume_types_extra_specs", params=_OF_SPECS
    ),
    "GET /os-quota-sets/{}": Ask("quotas.show_quota_set"),
    "PUT /os-quota-sets/{}": Ask("quotas.update_quota_set", {"quota_set": {"volumes": 99}}),
    "DELETE /os-quota-sets/{}": Ask("quotas.delete_quota_set"),
    "GET /os-quota-sets/{}/defaults": Ask("quotas.show_quota_set"),
    "GET /os-quota-class-sets/{}": Ask("quota_classes.show_quota_classes"),
    "PUT /os-quota-class-sets/{}": Ask(
        "quota_classes.update_quota_classes", {"quota_class_set": {"volumes": 99}}
    ),
    "GET /limits": Ask("limits.show_limits"),
    "GET /os-availability-zone": Ask(many("availabilityZoneInfo", _ZONE)),
    "GET /os-services": Ask("services.list_services"),
    "GET /os-hosts": Ask("hosts.list_hosts"),
    "GET /os-hosts/{}": Ask("hosts.show_host"),
    "POST /workers/cleanup": Ask(
        record(cleaning={"type": "array"}, unavailable={"type": "array"}), {}, status=202
    ),
    "GET /extensions": Ask("extensions.list_extensions"),
    "GET /extensions/{}": Ask(record(extension=_EXTENSION)),
    "GET /resource_filters": Ask(many("resource_filters", _RESOURCE_FILTER)),
    "GET /scheduler-stats/get_pools": Ask(
        "scheduler_stats.get_pools_with_detail", query="?detail=true"
    ),
    "GET /messages": Ask("messages.list_messages"),
    "GET /messages/{}": Ask("messages.show_message"),
    "DELETE /messages/{}": Ask("messages.delete_message"),
    "GET /capabilities/{}": Ask("capabilities.show_backend_capabilities"),
    "GET /groups": Ask("groups.list_groups_no_detail"),
    "GET /groups/detail": Ask("groups.list_groups_with_detail"),
    "GET /group_types": Ask("group_types.list_group_types"),
    "GET /group_snapshots": Ask("group_snapshots.list_group_snapshots_no_detail"),
    "GET /group_snapshots/detail": Ask("group_snapshots.list_group_snapshots_with_detail"),
    "GET /qos-specs": Ask("qos.list_qos"),
    **{
        f"GET /{path}": Ask(many(key, _OBJECT))
        for path, key in absent.EMPTY.items()
        if path.partition("/")[0] not in ("groups", "group_types", "group_snapshots", "qos-specs")
    },
    "GET /default-types": Ask(many("default_types", _DEFAULT)),
    "GET /default-types/{}": Ask(record(default_type=_DEFAULT)),
    "PUT /default-types/{}": Ask(
        record(default_type=_DEFAULT), {"default_type": {"volume_type": "one"}}
    ),
    "DELETE /default-types/{}": Ask(None, status=204),
    "PUT /os-services/enable": Ask("services.enable_service", _SERVICE),
    "PUT /os-services/disable": Ask("services.disable_service", _SERVICE),
    "PUT /os-services/disable-log-reason": Ask(
        "services.disable_log_reason", {**_SERVICE, "disabled_reason": "x"}
    ),
}
#: why nothing of them can be held: they are refused, or find nothing
REFUSED: frozenset[str] = frozenset(
    {
        *("POST /attachments", "PUT /attachments/{}", "DELETE /attachments/{}"),
        *("POST /attachments/{}/action", "POST /backups/import_record"),
        *("GET /backups/{}/export_record", "POST /types/{}/encryption"),
        *(f"{method} /types/{{}}/encryption/{{}}" for method in ("GET", "PUT", "DELETE")),
        *("PUT /os-hosts/{}", "PUT /os-services/{}", f"{_ACTION} os-reimage"),
        *(f"{_ACTION} {name}" for name in volume_actions._INSTEAD),
        *(f"POST /snapshots/{{}}/action {name}" for name in ("os-unmanage",)),
        "POST /snapshots/{}/action os-update_snapshot_status",
        *(f"POST /{path}" for path in absent.REFUSED),
        *(
            f"{method} /{path}/{{}}"
            for method in ("GET", "PUT", "DELETE")
            for path in absent.EMPTY
            if "/" not in path
        ),
    }
)


_TABLES = (
    *(schema.volumes, schema.volume_attachments, schema.volume_snapshots, schema.volume_backups),
    *(schema.volume_transfers, schema.volume_types, schema.volume_type_access, schema.operations),
    schema.volume_default_types,
    *(schema.faults, schema.deleted_volume_messages, schema.vmids, schema.vmid_bands),
)


def restore(api: VolumeApi) -> None:
    """Have in the cloud what `rows` says, and nothing else."""

    def write(connection: Any) -> None:
        for table in _TABLES:
            connection.execute(table.delete())
        for table, values in rows():
            connection.execute(table.insert().values(**values))

    api.world.conductor.store.run(write)
