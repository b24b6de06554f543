"""A cloud to break in one process: conductor, scheduler and agent on SQLite, without a broker.

It starts in a second and is driven in the test's own process. Services are stopped and started
again here; they are killed on a stage (``tests/chaos/stage.py``).
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from keystoneauth1 import session, token_endpoint
from oslo_config import cfg

from compute.worker.service import ComputeService
from conductor.rpc import connect
from db import engine, schema
from identity.private_file import write_private
from launcher import configuration, wiring
from launcher.embedded.inprocess import WsgiAdapter
from launcher.embedded.settings import Sections, render
from placement import config as placement_config
from placement.app import make_app, make_services
from placement.db import migrate
from simulator.server import Options, Simulator
from tests.chaos import dressing
from tests.chaos.cloud import Cloud
from tests.fixtures import databases
from tests.fixtures.auth import SERVICE, header_auth

SPEED = 1000.0
_PLACEMENT = "http://placement.invalid"
ORDER = ("conductor", "scheduler", "compute")


class World(Cloud):
    """The running cloud."""

    def __init__(
        self,
        folder: Path,
        stack: contextlib.ExitStack,
        options: Mapping[str, Mapping[str, str | None]],
        nodes: int,
        *,
        each_node: bool = False,
    ) -> None:
        super().__init__()
        self._each_node = each_node
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.simulator = Simulator(
            Options(folder / "simulator", nodes=nodes, speed=SPEED, tls=True, node_endpoints=True)
        )
        self.simulator.start()
        stack.callback(self.simulator.stop)
        self.database_url = f"sqlite:///{folder}/cloud.sqlite"
        databases.create(self.database_url)
        self.engine = engine.writer(self.database_url)
        dressing.identify(self.engine)
        stack.callback(self.engine.dispose)
        write_private(folder / "world.conf", render(self._sections(options)))
        self.conf = configuration.load([str(folder / "world.conf")])
        self._wiring = wiring.Wiring(self.conf, self._placement_session(stack))
        self.placement = self._wiring.placement
        self.client = connect(self._wiring.transport)
        self._services: dict[str, wiring.Service] = {}
        stack.callback(self._stop_all)
        for kind in ORDER:
            self.start(kind)
        self.until(self._hosts_are_known, 60)

    def start(self, kind: str) -> None:
        """Start a service."""
        self._services[kind] = wiring.SERVICES[kind](self._wiring)
        self._services[kind].start()

    def restart(self, kind: str) -> None:
        """Stop a service, wherever it stands, and start it again; its leases are over."""
        self._services.pop(kind).stop()
        self.end_leases("world", "compute:world")
        self.start(kind)

    def look(self) -> None:
        """Have the agents see their clusters now, and not only once a second."""
        service = self._services["compute"]
        assert isinstance(service, ComputeService)
        for observer in service._observers.values():
            observer.look()

    # --- inner

    def _stop_all(self) -> None:
        for kind in reversed(ORDER):
            if kind in self._services:
                self._services.pop(kind).stop()

    def _placement_session(self, stack: contextlib.ExitStack) -> session.Session:
        conf = cfg.ConfigOpts()
        placement_config.register(conf)
        conf([], project="test", default_config_files=[])
        url = f"sqlite:///{self._folder}/placement.sqlite"
        migrate.upgrade(url)
        conf.set_override("connection", url, placement_config.DATABASE_GROUP)
        services = make_services(conf)
        stack.callback(services.database.close)
        made = session.Session(auth=token_endpoint.Token(_PLACEMENT, SERVICE))
        made.session.mount(_PLACEMENT, WsgiAdapter(make_app(conf, header_auth, services)))
        return made

    def _sections(self, options: Mapping[str, Mapping[str, str | None]]) -> Sections:
        simulator = self._folder / "simulator"
        token = json.loads((simulator / "token.json").read_text(encoding="utf-8"))
        write_private(simulator / "agent-token", f"{token['tokenid']}={token['secret']}\n")
        endpoint = self.simulator.endpoints[0]
        asked = endpoint["node_urls"].values() if self._each_node else [endpoint["url"]]
        made: Sections = {
            "DEFAULT": {"transport_url": f"micronova-local://{uuid.uuid4().hex}"},
            "database": {"connection": self.database_url},
            "placement": {"endpoint_override": _PLACEMENT},
            "quota": {"instances": "-1", "cores": "-1", "ram": "-1"},
            "networks": {"subnets": "vmbr0=10.20.0.0/16"},
            "conductor": {
                "name": "world",
                "lease_seconds": "5",
                "scan_seconds": "0.1",
                "audit_settle_seconds": "0.2",
            },
            "scheduler": {"name": "world"},
            "compute": {
                "worker": "world",
                "heartbeat_seconds": "1",
                "observe_seconds": "1",
                "content_seconds": "1",
                "shutdown_seconds": "1",
                # A reader beside an operation would add calls to those that are made to fail.
                "console_log_kib": "0",
                "stop_seconds": "5",
            },
            "proxmox": {"clusters": endpoint["cluster"]},
            f"proxmox:{endpoint['cluster']}": {
                "endpoints": ",".join(asked),
                "token_file": str(simulator / "agent-token"),
                "ca_file": str(simulator / "ca.pem"),
                "vm_storage": "local",
                "iso_storage": "local",
                "blind_seconds": "5",
                "linked_clones": "always",
                "restart_lock_seconds": str(30 / SPEED),
            },
        }
        for section, values in options.items():
            merged = {**made.get(section, {}), **values}
            made[section] = {name: value for name, value in merged.items() if value is not None}
        return made

    def _hosts_are_known(self) -> bool:
        hosts = self.rows(schema.hosts.select())
        images = self.rows(schema.images.select())
        if not hosts or not images:
            return False
        known = {provider.uuid for provider in self.placement.providers()}
        return all(row.uuid in known and self.placement.provider_usages(row.uuid) for row in hosts)

    def next_vmid(self) -> int:
        """Return the VMID that the next build is given."""
        return int(self.rows(sa.select(schema.vmid_bands.c.next))[0][0])


@contextlib.contextmanager
def world(
    folder: Path,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    nodes: int = 2,
    *,
    each_node: bool = False,
) -> Iterator[World]:
    """Run a world until the block ends; then it must be clean, see ``Cloud.require_clean``.

    ``options`` are sections of its configuration; None leaves an option at its default.
    ``each_node``: the agent asks the nodes' own endpoints, not one for all of them.
    """
    with contextlib.ExitStack() as stack:
        running = World(folder, stack, options or {}, nodes, each_node=each_node)
        yield running
        running.require_clean()
