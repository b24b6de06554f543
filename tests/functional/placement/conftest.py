"""The real service on a real database: SQLite, and PostgreSQL where there is one."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref import simple_server

import pytest
import sqlalchemy as sa
from falcon import testing
from keystoneauth1 import adapter, session, token_endpoint
from oslo_config import cfg

from placement import config
from placement.app import make_app, make_services
from placement.client import PlacementClient
from placement.operation import Services
from tests.fixtures import databases
from tests.fixtures.auth import SERVICE, header_auth
from tests.functional.db.conftest import (  # noqa: F401
    mariadb_server,
    mariadb_url,
    postgres_server,
    postgres_url,
    sqlite_url,
    url,
)


@pytest.fixture
def database_url(url: str) -> str:  # noqa: F811
    """The URL of a placement database that is up to date."""
    databases.create_placement(url)
    return url


@pytest.fixture
def conf(database_url: str) -> cfg.ConfigOpts:
    """The service's configuration."""
    options = cfg.ConfigOpts()
    config.register(options)
    options([], project="test", default_config_files=[])
    options.set_override("connection", database_url, config.DATABASE_GROUP)
    return options


@pytest.fixture
def services(conf: cfg.ConfigOpts) -> Iterator[Services]:
    """What the resources work with."""
    made = make_services(conf)
    yield made
    made.database.close()


def typed(app: Any) -> Any:
    """Return `app`, with a type for empty 201 answers: wsgiref's validator wants one."""

    def door(environ: dict[str, Any], start_response: Any) -> Any:
        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            if status.startswith("201") and ("content-length", "0") in headers:
                headers = [*headers, ("content-type", "text/plain")]
            return start_response(status, headers, exc_info)

        return app(environ, start)

    return door


class Api(testing.TestClient):
    """The service at the newest microversion, as a trusted service."""

    def __init__(self, app: Any, version: str = "1.39", token: str = SERVICE) -> None:
        headers = {"X-Auth-Token": token, "OpenStack-API-Version": f"placement {version}"}
        super().__init__(typed(app), headers=headers)

    def at(self, version: str, token: str = SERVICE) -> Api:
        """The same service, at another version or as somebody else."""
        return Api(self.app, version, token)


@pytest.fixture
def app(conf: cfg.ConfigOpts, services: Services) -> Any:
    """The WSGI application."""
    return make_app(conf, header_auth, services)


@pytest.fixture
def api(app: Any) -> Api:
    """A client without a socket."""
    return Api(app)


class _Server(ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True


class _Quiet(simple_server.WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve a WSGI application over HTTP; give its address."""
    server = simple_server.make_server("127.0.0.1", 0, app, _Server, _Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


@pytest.fixture
def endpoint(app: Any) -> Iterator[str]:
    """The service over HTTP."""
    with served(app) as address:
        yield address


@pytest.fixture
def plain_client(app: Any) -> Iterator[PlacementClient]:
    """The client of a service with the Placement API and nothing else, as OpenStack's."""

    def plain(environ: dict[str, Any], start_response: Any) -> Any:
        if environ["PATH_INFO"].startswith("/micronova/"):
            start_response("404 Not Found", [("Content-Type", "text/plain")])
            return [b""]
        return app(environ, start_response)

    with served(plain) as address:
        yield client_at(address)


def client_at(endpoint: str) -> PlacementClient:
    """Return a client of the service at an address."""
    login = session.Session(auth=token_endpoint.Token(endpoint, SERVICE))
    return PlacementClient(adapter.Adapter(login, service_type="placement"))


@pytest.fixture
def client(endpoint: str) -> PlacementClient:
    """The client that the other services use."""
    return client_at(endpoint)


@pytest.fixture
def count(services: Services) -> Callable[[Callable[[], Any]], list[str]]:
    """Runs something and returns the statements it sent to the database."""

    def counted(work: Callable[[], Any]) -> list[str]:
        said: list[str] = []

        def listen(_c: object, _cursor: object, text: str, *_: object) -> None:
            if not text.startswith(("BEGIN", "COMMIT", "ROLLBACK")):
                said.append(text)

        engines = (services.database.reader, services.database.writer)
        for engine in engines:
            sa.event.listen(engine, "before_cursor_execute", listen)
        try:
            work()
        finally:
            for engine in engines:
                sa.event.remove(engine, "before_cursor_execute", listen)
        return said

    return counted
