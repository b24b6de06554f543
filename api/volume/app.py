"""Builds the Block Storage API as a WSGI application."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from api import config as api_config
from api.volume.call import Cloud, resources
from api.volume.errors import FAULTS
from api.volume.paths import Paths
from api.volume.resources import absent, volume_actions, volumes
from api.volume.resources.absent import Routes
from api.volume.resources.attachments import ATTACHMENTS
from api.volume.resources.backups import BACKUP_ACTIONS, BACKUPS
from api.volume.resources.default_types import DEFAULT_TYPES
from api.volume.resources.encryption import ENCRYPTION
from api.volume.resources.extensions import Extensions
from api.volume.resources.hosts import HOSTS
from api.volume.resources.messages import MESSAGES
from api.volume.resources.metadata import Metadata
from api.volume.resources.overview import OVERVIEW
from api.volume.resources.quotas import LIMITS, QUOTA_SETS
from api.volume.resources.snapshots import SNAPSHOT_ACTIONS, SNAPSHOT_METADATA, SNAPSHOTS
from api.volume.resources.transfers import TRANSFERS
from api.volume.resources.types import EXTRA_SPECS, TYPE_ACTIONS, TYPES
from api.volume.resources.versions import Versions, anonymous
from api.volume_policies import RULES
from common import quotas
from common import volumes as options
from conductor.rpc import ConductorRpc
from web.assembly import Application, Protect, assemble
from web.policy import Enforcer
from web.wsgi import Wsgi


def make_app(
    conf: cfg.ConfigOpts,
    engine: sa.Engine,
    conductor: ConductorRpc,
    protect: Protect | None = None,
) -> Wsgi:
    """Return the Block Storage API; `engine` reads the cloud database, `protect` is as in
    `assemble`."""
    api_config.register(conf)
    quotas.register(conf)
    options.register(conf)
    cloud = Cloud(conf, Enforcer(conf, RULES), engine, conductor)
    api = Application(
        service_type="block-storage",
        resources=resources(cloud, routes()),
        faults=FAULTS,
        anonymous=anonymous,
        layers=[Paths],
        # Cinder answers the same with and without the slash only for version documents.
        strips_slash=False,
    )
    return assemble(api, conf, protect)


def routes() -> Routes:
    """Path → (HTTP method → operations, the actions of a POST)."""
    versions = Versions()
    return {
        "/": ({"GET": [versions.index]}, {}),
        **dict.fromkeys(("/v3", "/v3/"), ({"GET": [versions.show]}, {})),
        **_of_volumes(),
        **_of_snapshots(),
        **_of_transfers(),
        **_of_backups(),
        **_of_types(),
        **_others(),
        **_default_types(),
        **absent.routes(),
    }


def _of_volumes() -> Routes:
    one, item = volumes.VOLUMES, "/v3/volumes/{volume_id}"
    attached = ATTACHMENTS
    return {
        "/v3/volumes": ({"GET": [one.index], "POST": [one.create]}, {}),
        "/v3/volumes/detail": ({"GET": [one.detail]}, {}),
        "/v3/volumes/summary": ({"GET": [one.summary]}, {}),
        item: ({"GET": [one.show], "PUT": [one.update], "DELETE": [one.delete]}, {}),
        f"{item}/encryption": ({"GET": [one.encryption]}, {}),
        **_of_metadata(item, volumes.METADATA),
        f"{item}/action": ({"POST": []}, volume_actions.ACTION_NAMES),
        "/v3/attachments": ({"GET": [attached.index], "POST": [attached.create]}, {}),
        "/v3/attachments/detail": ({"GET": [attached.detail]}, {}),
        "/v3/attachments/{attachment_id}": (
            {
                "GET": [attached.show],
                "PUT": [attached.update],
                "DELETE": [attached.delete],
            },
            {},
        ),
        "/v3/attachments/{attachment_id}/action": ({"POST": [attached.complete]}, {}),
    }


def _of_snapshots() -> Routes:
    one, item = SNAPSHOTS, "/v3/snapshots/{snapshot_id}"
    return {
        "/v3/snapshots": ({"GET": [one.index], "POST": [one.create]}, {}),
        "/v3/snapshots/detail": ({"GET": [one.detail]}, {}),
        item: ({"GET": [one.show], "PUT": [one.update], "DELETE": [one.delete]}, {}),
        **_of_metadata(item, SNAPSHOT_METADATA),
        f"{item}/action": ({"POST": []}, SNAPSHOT_ACTIONS),
    }


def _of_transfers() -> Routes:
    one, found = TRANSFERS, dict[str, Any]()
    makes = {"os-volume-transfer": one.create_with_snapshots, "volume-transfers": one.create}
    for name, create in makes.items():
        collection, item = f"/v3/{name}", f"/v3/{name}/{{transfer_id}}"
        found[collection] = ({"GET": [one.index], "POST": [create]}, {})
        found[f"{collection}/detail"] = ({"GET": [one.detail]}, {})
        found[item] = ({"GET": [one.show], "DELETE": [one.delete]}, {})
        found[f"{item}/accept"] = ({"POST": [one.accept]}, {})
    return found


def _of_backups() -> Routes:
    one, item = BACKUPS, "/v3/backups/{backup_id}"
    return {
        "/v3/backups": ({"GET": [one.index], "POST": [one.create]}, {}),
        "/v3/backups/detail": ({"GET": [one.detail]}, {}),
        "/v3/backups/import_record": ({"POST": [one.import_record]}, {}),
        item: ({"GET": [one.show], "PUT": [one.update], "DELETE": [one.delete]}, {}),
        f"{item}/restore": ({"POST": [one.restore]}, {}),
        f"{item}/export_record": ({"GET": [one.export]}, {}),
        f"{item}/action": ({"POST": []}, BACKUP_ACTIONS),
    }


def _of_metadata(item: str, meta: Metadata) -> Routes:
    return {
        f"{item}/metadata": (
            {"GET": [meta.index], "POST": [meta.create], "PUT": [meta.update_all]},
            {},
        ),
        f"{item}/metadata/{{key}}": (
            {"GET": [meta.show], "PUT": [meta.update], "DELETE": [meta.delete]},
            {},
        ),
    }


def _of_types() -> Routes:
    one, specs, item = TYPES, EXTRA_SPECS, "/v3/types/{type_id}"
    secret = ENCRYPTION
    return {
        "/v3/types": ({"GET": [one.index], "POST": [one.create]}, {}),
        item: ({"GET": [one.show], "PUT": [one.update], "DELETE": [one.delete]}, {}),
        f"{item}/os-volume-type-access": ({"GET": [one.access]}, {}),
        f"{item}/action": ({"POST": []}, TYPE_ACTIONS),
        f"{item}/encryption": ({"GET": [secret.index], "POST": [secret.create]}, {}),
        f"{item}/encryption/{{key}}": (
            {"GET": [secret.item], "PUT": [secret.update], "DELETE": [secret.delete]},
            {},
        ),
        f"{item}/extra_specs": ({"GET": [specs.index], "POST": [specs.create]}, {}),
        f"{item}/extra_specs/{{key}}": (
            {"GET": [specs.show], "PUT": [specs.update], "DELETE": [specs.delete]},
            {},
        ),
    }


def _default_types() -> Routes:
    one = DEFAULT_TYPES
    return {
        "/v3/default-types": ({"GET": [one.index]}, {}),
        "/v3/default-types/{project_id}": (
            {"GET": [one.show], "PUT": [one.update], "DELETE": [one.delete]},
            {},
        ),
    }


def _others() -> Routes:
    quota, seen, extensions = "/v3/os-quota-sets/{project_id}", OVERVIEW, Extensions()
    return {
        quota: (
            {
                "GET": [QUOTA_SETS.show],
                "PUT": [QUOTA_SETS.update],
                "DELETE": [QUOTA_SETS.delete],
            },
            {},
        ),
        f"{quota}/defaults": ({"GET": [QUOTA_SETS.defaults]}, {}),
        "/v3/os-quota-class-sets/{class_name}": (
            {"GET": [QUOTA_SETS.show_class], "PUT": [QUOTA_SETS.update_class]},
            {},
        ),
        "/v3/limits": ({"GET": [LIMITS.show]}, {}),
        "/v3/os-availability-zone": ({"GET": [seen.zones]}, {}),
        "/v3/os-services": ({"GET": [seen.services]}, {}),
        "/v3/os-services/enable": ({"PUT": [HOSTS.enable]}, {}),
        "/v3/os-services/disable": ({"PUT": [HOSTS.disable]}, {}),
        "/v3/os-services/disable-log-reason": ({"PUT": [HOSTS.disable_for_a_reason]}, {}),
        "/v3/os-services/{name}": ({"PUT": [HOSTS.act]}, {}),
        "/v3/os-hosts": ({"GET": [HOSTS.index]}, {}),
        "/v3/os-hosts/{host}": ({"GET": [HOSTS.show], "PUT": [HOSTS.update]}, {}),
        "/v3/workers/cleanup": ({"POST": [HOSTS.clean_up]}, {}),
        "/v3/extensions": ({"GET": [extensions.index]}, {}),
        "/v3/extensions/{alias}": ({"GET": [extensions.show]}, {}),
        "/v3/resource_filters": ({"GET": [extensions.filters]}, {}),
        "/v3/scheduler-stats/get_pools": ({"GET": [seen.pools]}, {}),
        "/v3/messages": ({"GET": [MESSAGES.index]}, {}),
        "/v3/messages/{record_id}": (
            {"GET": [MESSAGES.show], "DELETE": [MESSAGES.delete]},
            {},
        ),
        "/v3/capabilities/{host}": ({"GET": [seen.capabilities]}, {}),
    }
