"""The whole simulator: clusters, ports, files in the state directory; also in-process."""

from __future__ import annotations

import os
import secrets
import ssl
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from simulator.api.persistent_faults import apply, undo
from simulator.engine import Clock, Engine
from simulator.http.app import PREFIX, Api, Entry, Request, Response
from simulator.http.certificate import server_context
from simulator.http.control import Control, Recorder, state_of
from simulator.http.routes import ROUTES, Router
from simulator.http.server import Server
from simulator.state.access import Access
from simulator.state.cluster import Cluster, Identity
from simulator.state.persistence import Store
from simulator.state.restore import restore
from simulator.state.roles import roles_of
from simulator.state.seed import (
    AGENT_TOKEN,
    AGENT_USER,
    Secrets,
    add_nodes,
    seed,
    turn_firewall_on,
)
from simulator.versions import VERSIONS

FAST = 1000.0
"""Simulated seconds per second while tasks are brought to their end."""


@dataclass(frozen=True)
class Options:
    """A simulator's settings. `port` 0 picks free ports; `speed` 1 is real time."""

    state_dir: Path
    clusters: int = 1
    nodes: int = 3
    bridges: int = 2
    host: str = "127.0.0.1"
    port: int = 0
    speed: float = 1.0
    pve_version: str = "9.2"
    tls: bool = False
    node_endpoints: bool = False
    token_file: Path | None = None
    firewall: bool = False
    optional_privileges: bool = False
    unprepared: bool = False


class WrongStateError(Exception):
    """The state directory belongs to another number of clusters or nodes."""


class Simulator:
    """Simulated clusters, listening from `start()` (or entering) until `stop()` (or leaving)."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.engine = Engine(Clock(options.speed))
        self.clusters: list[Cluster] = []
        self._entries: dict[object, Entry] = {}
        self.endpoints: list[dict[str, Any]] = []
        self.recorder = Recorder()
        options.state_dir.mkdir(parents=True, exist_ok=True)
        options.state_dir.chmod(0o700)
        self._store = Store(options.state_dir / "state.sqlite")
        self.secrets, self._key = self._remembered()
        self._api = Api(Router(ROUTES))
        self._control = Control(self, self.recorder)
        context = self._tls_context() if options.tls else None
        self._authority = (options.state_dir / "ca.pem").read_text() if options.tls else ""
        self._server = Server(self._answer, context)

    def __enter__(self) -> Simulator:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    @property
    def token(self) -> dict[str, str]:
        """User, token name and secret of the agent."""
        return {
            "user": AGENT_USER,
            "token_name": AGENT_TOKEN,
            "secret": self.secrets.token,
            "tokenid": f"{AGENT_USER}!{AGENT_TOKEN}",
        }

    @property
    def password(self) -> str:
        """The password of root@pam."""
        return self.secrets.password

    def start(self) -> None:
        """Load or seed the clusters, open the ports, write the files."""
        self._make_clusters()
        self.engine.start()
        self._listen()
        self._server.start()
        self._write_files()

    def finish(self, seconds: float) -> bool:
        """Run fast until no task runs, for a limited real time; return whether none runs.

        A real cluster's tasks continue when its client ends, so an orderly end waits for them.
        """
        self.engine.set_speed(max(self.engine.clock.speed, FAST))
        deadline = time.monotonic() + seconds
        while running := [p for one in self.clusters for p in one.running_tasks()]:
            for process in running:
                if not process.finished.wait(max(0.0, deadline - time.monotonic())):
                    return False
        return True

    def stop(self) -> None:
        """Close the ports; running tasks will be `unexpected status` after a restart."""
        self._server.stop()
        self.engine.stop()
        self._store.close()

    def state(self) -> dict[str, Any]:
        """Return all clusters by name, as `GET /_sim/state` shows them."""
        return {cluster.name: state_of(cluster) for cluster in self.clusters}

    def cluster(self, name: str = "") -> Cluster:
        """Return a cluster by name; the first without one."""
        if not name:
            return self.clusters[0]
        return next(one for one in self.clusters if one.name == name)

    def fault(self, *, cluster: str = "", **order: Any) -> int:
        """Inject a fault, as `POST /_sim/faults` does; return its id."""
        found = self.cluster(cluster)
        with found.turn():
            fault = found.faults.add(order)
            apply(found, fault)
            return fault.id

    def await_strike(self, fault_id: int, timeout_seconds: float, cluster: str = "") -> bool:
        """Wait until a fault has struck; return whether it has."""
        found = self.cluster(cluster)
        with found.turn():
            fault = found.faults.orders.get(fault_id)
        return fault is None or fault.strike.wait(timeout_seconds)

    def take_back(self, fault_id: int, cluster: str = "") -> None:
        """Remove one fault; a call that it holds continues."""
        found = self.cluster(cluster)
        with found.turn():
            fault = found.faults.remove(fault_id)
            if fault is not None:
                undo(found, fault)

    def clear_faults(self, cluster: str = "") -> None:
        """Remove all faults of a cluster."""
        found = self.cluster(cluster)
        with found.turn():
            for fault in found.faults.clear():
                undo(found, fault)

    def reset(self) -> None:
        """Delete all VMs, volumes, tasks and faults; passwords and tokens stay."""
        for cluster in self.clusters:
            with cluster.turn():
                for fault in cluster.faults.clear():
                    undo(cluster, fault)
                for task in cluster.tasks.active():
                    cluster.tasks.kill(task.upid)
        self._store.clear()
        self._remember()
        old = list(self.clusters)
        self.clusters.clear()
        self._make_clusters()
        replaced = dict(zip((one.name for one in old), self.clusters, strict=True))
        self._entries.update(
            {
                port: Entry(replaced[one.cluster.name], one.node)
                for port, one in self._entries.items()
            }
        )
        self.recorder.clear()

    def _remembered(self) -> tuple[Secrets, bytes]:
        saved = dict(self._store.read(-1, "secret"))
        shape = f"{self.options.clusters} clusters of {self.options.nodes} nodes"
        if saved.get("shape", shape) != shape:
            raise WrongStateError(
                f"{self.options.state_dir} holds {saved['shape']}, not {shape}: node names "
                "would collide"
            )
        self._shape = shape
        if "token" not in saved:
            return Secrets.new(), secrets.token_bytes(32)
        return Secrets(saved["token"], saved["password"]), bytes.fromhex(saved["key"])

    def _remember(self) -> None:
        known = (
            ("token", self.secrets.token),
            ("password", self.secrets.password),
            ("key", self._key.hex()),
            ("shape", self._shape),
        )
        self._store.write(-1, [("secret", name, value) for name, value in known])

    def _make_clusters(self) -> None:
        self._remember()
        version = VERSIONS[self.options.pve_version]
        roles = roles_of(legacy="VM.Monitor" in version.agent_privileges)
        for index in range(self.options.clusters):
            access = Access(dict(roles), self._key + bytes([index & 255, index >> 8]))
            identity = Identity(index, f"sim{index + 1}", version)
            cluster = Cluster(identity, self.engine, self._store, access)
            cluster.authority = self._authority
            first = index * self.options.nodes + 1
            if next(iter(self._store.read(index, "access")), None) is None:
                seed(cluster, first, self.options, self.secrets)
                if self.options.firewall:
                    turn_firewall_on(cluster)
            else:
                restore(cluster, self._store)
                with cluster.turn():
                    add_nodes(cluster, first, self.options.nodes, self.options.bridges)
            self.clusters.append(cluster)

    def _listen(self) -> None:
        options = self.options
        scheme = "https" if options.tls else "http"
        host = f"[{options.host}]" if ":" in options.host else options.host
        next_node_port = options.port + options.clusters
        for index, cluster in enumerate(self.clusters):
            wanted = options.port + index if options.port else 0
            port = self._open(wanted, Entry(cluster))
            node_urls: dict[str, str] = {}
            for name in cluster.nodes if options.node_endpoints else ():
                opened = self._open(next_node_port if options.port else 0, Entry(cluster, name))
                node_urls[name] = f"{scheme}://{host}:{opened}"
                next_node_port += 1
            self.endpoints.append(
                {
                    "cluster": cluster.name,
                    "url": f"{scheme}://{host}:{port}",
                    "node_urls": node_urls,
                }
            )

    def _open(self, port: int, entry: Entry) -> int:
        token = object()
        self._entries[token] = entry
        return self._server.listen(self.options.host, port, token)

    def _answer(self, token: object, request: Request) -> Response:
        entry = self._entries[token]
        if request.target.startswith("/_sim/"):
            return self._control.answer(entry, request)
        if not request.target.startswith(PREFIX):
            return Response(404, "Not Found", content_type="")
        began = time.monotonic()
        status = 0
        try:
            response = self._api.answer(entry, request)
            status = response.status
            return response
        finally:
            self.recorder.add(entry, request, status, began)

    def _tls_context(self) -> ssl.SSLContext:
        return server_context(self.options.state_dir, self.options.host)

    def _write_files(self) -> None:
        directory = self.options.state_dir
        token_file = self.options.token_file or directory / "token.json"
        if not self.options.unprepared:
            write_private(token_file, orjson.dumps(self.token))
        write_private(directory / "root-password", self.secrets.password.encode())
        write_private(directory / "endpoints.json", orjson.dumps(self.endpoints))


def write_private(path: Path, content: bytes) -> None:
    """Write a file, atomically, that only its owner may read."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
    part.replace(path)
