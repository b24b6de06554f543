"""The whole Block Storage API as one table.

A row is a path under `/v3`; what guards its operations stands at the resource's methods.
"""

from __future__ import annotations

from api import rows, volume_policies
from api.rows import Row
from api.versioned import Cloud
from api.volume.call import VolumeApi
from api.volume.resources import absent
from api.volume.resources.attachments import Attachments
from api.volume.resources.backups import BACKUP_ACTIONS, Backups
from api.volume.resources.default_types import DefaultTypes
from api.volume.resources.encryption import Encryption
from api.volume.resources.extensions import Extensions
from api.volume.resources.hosts import Hosts
from api.volume.resources.messages import Messages
from api.volume.resources.metadata import SNAPSHOT_METADATA, VOLUME_METADATA
from api.volume.resources.overview import Overview
from api.volume.resources.quotas import Limits, QuotaSets
from api.volume.resources.snapshots import SNAPSHOT_ACTIONS, Snapshots
from api.volume.resources.transfers import Transfers
from api.volume.resources.types import TYPE_ACTIONS, ExtraSpecs, Types
from api.volume.resources.versions import Versions
from api.volume.resources.volume_actions import ACTIONS, VolumeActions
from api.volume.resources.volumes import Volumes
from web import protected
from web.protected import Protected, Served

VERSION = "/v3"
_LIST = {"GET": "index", "POST": "create"}
_ITEM = {"GET": "show", "PUT": "update", "DELETE": "delete"}

ROUTES = (
    Row("/volumes", Volumes, _LIST),
    Row("/volumes/detail", Volumes, {"GET": "detail"}),
    Row("/volumes/summary", Volumes, {"GET": "summary"}),
    Row("/volumes/{volume_id}", Volumes, _ITEM),
    Row("/volumes/{volume_id}/encryption", Volumes, {"GET": "encryption"}),
    Row("/volumes/{volume_id}/metadata", VOLUME_METADATA, {**_LIST, "PUT": "update_all"}),
    Row("/volumes/{volume_id}/metadata/{key}", VOLUME_METADATA, _ITEM),
    Row("/volumes/{volume_id}/action", VolumeActions, {"POST": ()}, ACTIONS),
    Row("/attachments", Attachments, _LIST),
    Row("/attachments/detail", Attachments, {"GET": "detail"}),
    Row("/attachments/{attachment_id}", Attachments, _ITEM),
    Row("/attachments/{attachment_id}/action", Attachments, {"POST": "complete"}),
    Row("/snapshots", Snapshots, _LIST),
    Row("/snapshots/detail", Snapshots, {"GET": "detail"}),
    Row("/snapshots/{snapshot_id}", Snapshots, _ITEM),
    Row("/snapshots/{snapshot_id}/metadata", SNAPSHOT_METADATA, {**_LIST, "PUT": "update_all"}),
    Row("/snapshots/{snapshot_id}/metadata/{key}", SNAPSHOT_METADATA, _ITEM),
    Row("/snapshots/{snapshot_id}/action", Snapshots, {"POST": ()}, SNAPSHOT_ACTIONS),
    *(
        row
        for path, create in (
            ("/os-volume-transfer", "create_with_snapshots"),
            ("/volume-transfers", "create"),
        )
        for row in (
            Row(path, Transfers, {"GET": "index", "POST": create}),
            Row(f"{path}/detail", Transfers, {"GET": "detail"}),
            Row(f"{path}/{{transfer_id}}", Transfers, {"GET": "show", "DELETE": "delete"}),
            Row(f"{path}/{{transfer_id}}/accept", Transfers, {"POST": "accept"}),
        )
    ),
    Row("/backups", Backups, _LIST),
    Row("/backups/detail", Backups, {"GET": "detail"}),
    Row("/backups/import_record", Backups, {"POST": "import_record"}),
    Row("/backups/{backup_id}", Backups, _ITEM),
    Row("/backups/{backup_id}/restore", Backups, {"POST": "restore"}),
    Row("/backups/{backup_id}/export_record", Backups, {"GET": "export"}),
    Row("/backups/{backup_id}/action", Backups, {"POST": ()}, BACKUP_ACTIONS),
    Row("/types", Types, _LIST),
    Row("/types/{type_id}", Types, _ITEM),
    Row("/types/{type_id}/os-volume-type-access", Types, {"GET": "access"}),
    Row("/types/{type_id}/action", Types, {"POST": ()}, TYPE_ACTIONS),
    Row("/types/{type_id}/encryption", Encryption, _LIST),
    Row("/types/{type_id}/encryption/{key}", Encryption, {**_ITEM, "GET": "item"}),
    Row("/types/{type_id}/extra_specs", ExtraSpecs, _LIST),
    Row("/types/{type_id}/extra_specs/{key}", ExtraSpecs, _ITEM),
    Row("/default-types", DefaultTypes, {"GET": "index"}),
    Row("/default-types/{project_id}", DefaultTypes, _ITEM),
    Row("/os-quota-sets/{project_id}", QuotaSets, _ITEM),
    Row("/os-quota-sets/{project_id}/defaults", QuotaSets, {"GET": "defaults"}),
    Row(
        "/os-quota-class-sets/{class_name}",
        QuotaSets,
        {"GET": "show_class", "PUT": "update_class"},
    ),
    Row("/limits", Limits, {"GET": "show"}),
    Row("/os-availability-zone", Overview, {"GET": "zones"}),
    Row("/os-services", Overview, {"GET": "services"}),
    Row("/os-services/{name}", Hosts, {"PUT": "act"}),
    Row("/os-services/enable", Hosts, {"PUT": "enable"}),
    Row("/os-services/disable", Hosts, {"PUT": "disable"}),
    Row("/os-services/disable-log-reason", Hosts, {"PUT": "disable_for_a_reason"}),
    Row("/os-hosts", Hosts, {"GET": "index"}),
    Row("/os-hosts/{host}", Hosts, {"GET": "show", "PUT": "update"}),
    Row("/workers/cleanup", Hosts, {"POST": "clean_up"}),
    Row("/extensions", Extensions, {"GET": "index"}),
    Row("/extensions/{alias}", Extensions, {"GET": "show"}),
    Row("/resource_filters", Extensions, {"GET": "filters"}),
    Row("/scheduler-stats/get_pools", Overview, {"GET": "pools"}),
    Row("/messages", Messages, {"GET": "index"}),
    Row("/messages/{message_id}", Messages, {"GET": "show", "DELETE": "delete"}),
    Row("/capabilities/{host}", Overview, {"GET": "capabilities"}),
    *absent.ROUTES,
)
#: the version documents, which need no token
VERSIONS = (
    Row("/", Versions, {"GET": "index"}),
    Row(VERSION, Versions, {"GET": "show"}),
    Row(f"{VERSION}/", Versions, {"GET": "show"}),
)


def resources(cloud: Cloud) -> dict[str, object]:
    """Return the tables as Falcon's resources by path."""
    api = VolumeApi(cloud)
    return rows.resources(api, VERSIONS, "") | rows.resources(api, ROUTES, VERSION)


def served() -> list[Served]:
    """Return all operations."""
    return [one for row in ROUTES for one in row.served()]


def operations() -> dict[str, list[Protected]]:
    """Return what each rule protects, as the sample policy lists it."""
    return protected.operations(volume_policies.RULES, served(), several=())
