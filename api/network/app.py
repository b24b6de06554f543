"""Builds the Network API: routes, middleware, error form, token check."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import falcon
import sqlalchemy as sa
from oslo_config import cfg

from api.network import discovery, errors, paths, quotas, resources
from api.network.policies import RULES
from web import auth
from web.policy import Enforcer
from web.proxies import Proxies
from web.wsgi import ContextMiddleware, JoinSlashes, RequestId

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

    Protect = Callable[..., WSGIApplication]

#: path → name of the collection: what a cloud with plain bridges has none of
_EMPTY = {
    "security-groups": "security_groups",
    "security-group-rules": "security_group_rules",
    "floatingips": "floatingips",
    "routers": "routers",
    "service-providers": "service_providers",
}


def make_app(
    conf: cfg.ConfigOpts, engine: sa.Engine, protect: Protect | None = None
) -> WSGIApplication:
    """The Network API as a WSGI application, to be mounted anywhere (SCRIPT_NAME is respected).

    `engine` reads the cloud database. `protect(app, anonymous=…)` puts the token check in front;
    None takes `web.auth.protect` with `[keystone_authtoken]` of `conf`.
    """
    app = falcon.App(middleware=[ContextMiddleware()])
    app.req_options.strip_url_path_trailing_slash = True
    errors.install(app)
    for path, resource in _routes(engine, Enforcer(conf, RULES)).items():
        app.add_route(path, resource)
    check = protect or functools.partial(auth.protect, conf=conf, service_type="network")
    checked = check(app, anonymous=discovery.anonymous)
    return RequestId(Proxies(JoinSlashes(paths.WithoutSuffix(checked)), conf))


def _routes(engine: sa.Engine, policy: Enforcer) -> dict[str, object]:
    routes: dict[str, object] = {
        "/": discovery.Versions(),
        "/v2.0": discovery.Index(),
        "/v2.0/extensions": discovery.Extensions(),
        "/v2.0/extensions/{alias}": discovery.Extension(),
        "/v2.0/quotas": quotas.Quotas(policy),
        "/v2.0/quotas/{project_id}": quotas.Quota(policy),
        "/v2.0/quotas/{project_id}/{what}": quotas.QuotaView(policy, engine),
    }
    for kind in resources.KINDS:
        store = resources.Store(kind, engine, policy)
        routes[f"/v2.0/{kind.plural}"] = resources.Collection(store)
        routes[f"/v2.0/{kind.plural}/{{record_id}}"] = resources.Item(store)
    routes |= {f"/v2.0/{path}": resources.Nothing(name) for path, name in _EMPTY.items()}
    return routes
