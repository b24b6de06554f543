"""Builds the Image API: routes, middleware, error form, token check."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import falcon
import sqlalchemy as sa
from oslo_config import cfg

from api.image import errors, resources
from api.image.policies import RULES
from api.image.versions import Versions, anonymous
from web import auth
from web.policy import Enforcer
from web.proxies import Proxies
from web.wsgi import ContextMiddleware, JoinSlashes, RequestId

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

    Protect = Callable[..., WSGIApplication]


def make_app(
    conf: cfg.ConfigOpts, engine: sa.Engine, protect: Protect | None = None
) -> WSGIApplication:
    """The Image API as a WSGI application, to be mounted anywhere (SCRIPT_NAME is respected).

    `engine` reads the cloud database. `protect(app, anonymous=…)` puts the token check in front;
    None takes `web.auth.protect` with `[keystone_authtoken]` of `conf`.
    """
    app = falcon.App(middleware=[ContextMiddleware()])
    app.req_options.strip_url_path_trailing_slash = True
    errors.install(app)
    store = resources.Store(engine, Enforcer(conf, RULES))
    for path, resource in _routes(store).items():
        app.add_route(path, resource)
    check = protect or functools.partial(auth.protect, conf=conf, service_type="image")
    return RequestId(Proxies(JoinSlashes(check(app, anonymous=anonymous)), conf))


def _routes(store: resources.Store) -> dict[str, object]:
    item = "/v2/images/{image_id}"
    action = resources.ImageAction(store)
    members = resources.Members(store)
    versions = Versions()
    return {
        "/": versions,
        "/versions": versions,
        "/v2/images": resources.Images(store),
        item: resources.ImageItem(store),
        f"{item}/file": resources.ImageData(store),
        f"{item}/stage": action,
        f"{item}/import": action,
        f"{item}/actions/{{name}}": action,
        f"{item}/tags/{{name}}": action,
        f"{item}/members": members,
        f"{item}/members/{{name}}": members,
        f"{item}/tasks": resources.Tasks(store),
        "/v2/schemas/{name}": resources.Schemas(),
        "/v2/info/import": resources.ImportInfo(),
        "/v2/info/stores": resources.StoreInfo(),
    }
