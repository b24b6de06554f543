"""Builds the Image API as a WSGI application."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from api import plain
from api.image import config, imports, members, resources
from api.image.data import uploads
from api.image.data.downloads import Downloads
from api.image.data.uploads import Uploads
from api.image.errors import FAULTS
from api.image.metadefs import resources as metadefs
from api.image.metadefs.kinds import Kind
from api.image.methods import Methods
from api.image.policies import RULES
from api.image.store import Store
from api.image.versions import Versions, anonymous
from conductor.rpc import ConductorRpc
from web import protected
from web.assembly import Application, Protect, assemble
from web.policy import Enforcer
from web.protected import Protected, Served, served_by
from web.wsgi import JoinSlashes, Wsgi


def make_app(
    conf: cfg.ConfigOpts,
    engine: sa.Engine,
    protect: Protect | None = None,
    conductor: ConductorRpc | None = None,
) -> Wsgi:
    """Return the Image API; `engine` reads the cloud database, `protect` is as in `assemble`.

    Without a `conductor` no image can be changed.
    """
    config.register(conf)
    policy = Enforcer(conf, RULES)
    data = Uploads(conf, engine)
    downloads = Downloads(conf, data)
    methods = Methods(data, downloads)
    paths = routes(Store(engine, policy, conductor), data, downloads, methods)
    api = Application(
        service_type="image",
        resources=plain.resources(policy, paths.items()),
        faults=FAULTS,
        anonymous=lambda path: anonymous(path) or uploads.is_spool(path),
        layers=[JoinSlashes],
        # As in Glance: nothing is a last segment of a path.
        strips_slash=False,
    )
    return assemble(api, conf, protect)


def served() -> list[Served]:
    """Return all operations."""
    nothing: Any = None
    paths = routes(nothing, nothing, nothing, nothing).items()
    return list(served_by((_path(path, resource), resource) for path, resource in paths))


def operations() -> dict[str, list[Protected]]:
    """Return what each rule protects, as the sample policy lists it."""
    several = [one.name for one in RULES if "metadef" not in one.name]
    return protected.operations(RULES, served(), several)


def _path(path: str, resource: object) -> str:
    """Return a path whose parameter has the name of what it names (`{object}`)."""
    kind = getattr(resource, "noun", None)
    return path.replace("{name}", f"{{{kind.name}}}") if isinstance(kind, Kind) else path


def routes(
    store: Store, data: Uploads, downloads: Downloads, methods: Methods
) -> dict[str, object]:
    """Path → what serves it."""
    item = "/v2/images/{image_id}"
    versions = Versions()
    return {
        "/": versions,
        "/versions": versions,
        "/v2/images": resources.Images(store, methods),
        item: resources.ImageItem(store, data),
        f"{item}/file": uploads.ImageFile(store, data),
        f"{item}/spool": uploads.SpooledData(data),
        f"{item}/stage": uploads.StagedData(store, data),
        f"{item}/import": imports.Import(store, methods, downloads),
        f"{item}/actions/deactivate": resources.Action(store, "deactivate", wanted=False),
        f"{item}/actions/reactivate": resources.Action(store, "reactivate", wanted=True),
        f"{item}/tags/{{tag}}": resources.Tags(store),
        f"{item}/members": members.Members(store),
        f"{item}/members/{{member_id}}": members.MemberItem(store),
        f"{item}/tasks": imports.Tasks(store, data),
        "/v2/tasks": resources.AllTasks(),
        **metadefs.routes(store),
        "/v2/schemas/{name}": resources.Schemas(),
        "/v2/schemas/metadefs/{name}": resources.Schemas("metadefs/"),
        "/v2/info/import": imports.ImportInfo(methods),
        "/v2/info/usage": uploads.UsageInfo(data),
        "/v2/info/stores": resources.StoreInfo(),
    }
