"""The dashboard as a WSGI application."""

from __future__ import annotations

from typing import Any

import falcon
import requests
from keystoneauth1.session import Session as HttpSession
from oslo_config import cfg

from common.clients import direct
from common.errors import ConfigurationError
from dashboard import login, password, render
from dashboard.config import GROUP
from dashboard.errors import ApiRefused
from dashboard.guard import Guarded, Site
from dashboard.page import Page
from dashboard.sections import SECTIONS
from dashboard.sessions.making import sessions
from dashboard.static_files import StaticFiles
from web.errors import Faults
from web.measuring import Measured
from web.proxies import Proxies
from web.wsgi import RequestId, Wsgi

_CONNECTIONS = 16


def make_app(conf: cfg.ConfigOpts, transport: requests.Session | None = None) -> Wsgi:
    """Make it, to be mounted anywhere; `transport` carries its requests to the APIs.

    Raises ConfigurationError.
    """
    options = conf[GROUP]
    if not options.auth_url:
        raise ConfigurationError("[dashboard] auth_url is not set.")
    transport = transport or direct.session(_CONNECTIONS)
    http = HttpSession(session=transport, verify=options.cafile or True)
    static = StaticFiles()
    site = Site(options, http, sessions(options), render.environment(static.address), SECTIONS)
    app: falcon.App[Any, Any] = falcon.App()
    app.req_options.strip_url_path_trailing_slash = True
    Faults(site.show_fault, "The dashboard failed; the request is {}.").install(app)
    app.add_error_handler(ApiRefused, site.on_refused)
    for path, pages in _paths().items():
        app.add_route(path, Guarded(site, pages))
    app.add_route("/login", login.Login(site))
    app.add_route("/logout", login.Logout(site))
    app.add_route("/project", login.SwitchProject(site))
    app.add_route("/password/change", password.ChangePassword(site))
    app.add_route("/theme", login.Theme(site))
    app.add_sink(static, r"/static/(?P<path>.+)")
    return Measured(RequestId(Proxies(app, conf)), "dashboard")


def _paths() -> dict[str, dict[str, Page]]:
    """Return the pages by path and method."""
    found: dict[str, dict[str, Page]] = {}
    for section in SECTIONS:
        for page in section.pages:
            found.setdefault(page.path, {})[page.method] = page
    return found
