"""The doors that agents and schedulers go through in the tests' own process, under the
director's eyes: the simulated clusters, and placement."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterable, Iterator
from socketserver import ThreadingMixIn
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit
from wsgiref import simple_server

from oslo_config import cfg

from placement import config as placement_config
from placement.app import make_app, make_services
from simulator.http.app import PREFIX, Request, Response
from simulator.server import Options, Simulator
from tests.chaos.director import GO, PLACEMENT, PROXMOX, Director
from tests.fixtures.auth import header_auth

AGENT = "compute-1"

#: what the director may say of a request to Proxmox VE → the simulator's order for it
SIMULATED: dict[str, dict[str, Any]] = {
    "fail": {"action": "fail"},
    "unreachable": {"action": "fail", "status": 595},
    "hang": {"action": "hang"},
    "lose": {"action": "lose-answer"},
    "599": {"action": "lose-answer", "status": 599},
    "drop": {"action": "drop"},
    "drop-answer": {"action": "lose-answer", "how": "drop"},
    "task-fail": {"action": "task-fail"},
    "task-kill": {"action": "task-kill"},
}
FAIL, LOSE = "fail", "lose"

_PARTS = (
    (re.compile(r"/nodes/[^/]+"), "/nodes/*"),
    (re.compile(r"/qemu/\d+"), "/qemu/*"),
    (re.compile(r"/tasks/UPID[^/]*"), "/tasks/*"),
    (re.compile(r"/snapshot/[^/]+"), "/snapshot/*"),
    (re.compile(r"/sdn/vnets/mn[^/]+"), "/sdn/vnets/*"),
    (re.compile(r"/content/.+$"), "/content/*"),
    (re.compile(r"/ha/(resources|rules)/.+$"), r"/ha/\1/*"),
)
#: parameters whose values say what kind of thing is asked for
_KIND_PARAMETERS = frozenset({"content", "type", "source"})
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")


def name_of(method: str, path: str, query: str = "") -> str:
    """A request without what differs from run to run, e.g. ``POST /nodes/*/qemu/*/config``, or
    ``GET /nodes/*/storage/local/content?content=images&vmid``: another question, another step."""
    for pattern, text in _PARTS:
        path = pattern.sub(text, path)
    asked = sorted(parse_qsl(query)) if method == "GET" else []
    words = [f"{key}={value}" if key in _KIND_PARAMETERS else key for key, value in asked]
    return f"{method} {path}{'?' if words else ''}{'&'.join(words)}"


class WatchedSimulator(Simulator):
    """A simulator whose requests pass by the director first."""

    def __init__(self, options: Options, director: Director) -> None:
        super().__init__(options)
        self._director = director

    def _answer(self, token: object, request: Request) -> Response:
        if not request.target.startswith(PREFIX):
            return super()._answer(token, request)
        target = urlsplit(request.target)
        path = unquote(target.path)[len(PREFIX) :]
        name = name_of(request.method, path, target.query)
        verdict, ticket = self._director.before(AGENT, PROXMOX, name)
        if verdict != GO:
            pattern = f"^{re.escape(path)}$"
            self.fault(method=request.method, path=pattern, **SIMULATED[verdict])
        try:
            return super()._answer(token, request)
        finally:
            self._director.after(AGENT, ticket)


class _Server(ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True
    request_queue_size = 128


class _Handler(simple_server.WSGIRequestHandler):
    def get_environ(self) -> dict[str, Any]:
        environ: dict[str, Any] = super().get_environ()
        environ["chaos.connection"] = self.connection
        return environ

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def watched_placement(database_url: str, director: Director) -> Iterator[str]:
    """Placement over HTTP without Keystone; gives its URL."""
    conf = cfg.ConfigOpts()
    placement_config.register(conf)
    conf([], project="test", default_config_files=[])
    conf.set_override("connection", database_url, placement_config.DATABASE_GROUP)
    services = make_services(conf)
    app = _watched(make_app(conf, header_auth, services), director)
    server = simple_server.make_server("127.0.0.1", 0, app, _Server, _Handler)
    thread = threading.Thread(target=server.serve_forever, name="placement", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
        services.database.close()


def _watched(app: Any, director: Director) -> Any:
    def door(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        name = f"{environ['REQUEST_METHOD']} {_UUID.sub('*', environ['PATH_INFO'])}"
        verdict, ticket = director.before(PLACEMENT, PLACEMENT, name)
        if verdict == FAIL:
            start_response("503 Service Unavailable", [("content-length", "0")])
            return []
        answer: Iterable[bytes] = app(environ, start_response)
        if director.after(PLACEMENT, ticket) == LOSE:
            environ["chaos.connection"].shutdown(socket.SHUT_RDWR)
            return []
        return answer

    return door
