"""The service as gunicorn runs it, with a settings file that tests rewrite between two requests.

The file (named by MICRONOVA_TEST_SETTINGS) holds JSON: the database's URL, options by group, and
the path of the policy file. Tokens are checked as OpenStack Placement's own tests have it: the
token is "user" or "user:project", roles come in a header, the user admin has the role admin.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from placement import config
from placement.app import make_app, make_services
from placement.operation import Services

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


def trusting(app: WSGIApplication, *, anonymous: Callable[[str], bool]) -> WSGIApplication:
    """Return `app` behind a check that believes what the token says."""

    def door(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not anonymous(environ.get("PATH_INFO", "")):
            token = environ.get("HTTP_X_AUTH_TOKEN")
            if token is None:
                start_response("401 Unauthorized", [("content-type", "application/json")])
                return [b"{}"]
            user, _, project = token.partition(":")
            environ["HTTP_X_USER_ID"] = user
            environ["HTTP_X_IDENTITY_STATUS"] = "Confirmed"
            environ.setdefault("HTTP_X_ROLES", "admin" if user == "admin" else "")
            if environ.get("HTTP_OPENSTACK_SYSTEM_SCOPE"):
                environ.pop("HTTP_X_PROJECT_ID", None)
            else:
                environ.setdefault("HTTP_X_PROJECT_ID", project or user)
        return app(environ, start_response)

    return door


class Served:
    """Builds the service again whenever the settings file is another."""

    def __init__(self, settings: Path) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._text = ""
        self._services: Services | None = None
        self._app: WSGIApplication | None = None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        text = self._settings.read_text()
        with self._lock:
            if text != self._text:
                self._build(json.loads(text))
                self._text = text
        assert self._app is not None
        return self._app(environ, start_response)

    def _build(self, wanted: dict[str, Any]) -> None:
        if self._services is not None:
            self._services.database.close()
        conf = cfg.ConfigOpts()
        config.register(conf)
        conf([], project="test", default_config_files=[])
        conf.set_override("connection", wanted["url"], config.DATABASE_GROUP)
        conf.set_override("policy_file", wanted["policy_file"], "oslo_policy")
        for group, options in wanted["settings"].items():
            for name, value in options.items():
                conf.set_override(name, value, group)
        self._services = make_services(conf)
        self._app = make_app(conf, trusting, self._services)


app = Served(Path(os.environ.get("MICRONOVA_TEST_SETTINGS", "settings.json")))
