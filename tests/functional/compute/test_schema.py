"""Proxmox VE's own schema takes every request of the driver."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from common import ids
from common.messages.commands import PowerAction, StrictGroup
from compute.hypervisor.proxmox import settings
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.driver import ProxmoxHypervisor
from simulator.errors import PveError
from simulator.http.routes import ROUTES, Router
from simulator.request.params import validate
from tests.functional.compute.conftest import (
    Worker,
    a_build,
    a_destroy,
    a_power,
    as_root,
    configuration,
    proxmox_text,
)
from tests.functional.simulator_fixture import RunningSimulator

Call = tuple[str, str, Mapping[str, Any]]


class RecordingClient(Client):
    """Sends as ever and records what was asked."""

    def __init__(self, cluster: settings.ClusterSettings) -> None:
        super().__init__(cluster)
        self.made: list[Call] = []

    def _request(self, method: str, path: str, values: dict[str, Any]) -> Any:
        self.made.append((method, path, dict(values)))
        return super()._request(method, path, values)


def problems(call: Call) -> Iterator[str]:
    """What the schema says against a request."""
    method, path, values = call
    found = Router(ROUTES).find(method.upper(), f"/{path}")
    if found is None:
        yield f"{method} {path}: there is no such method"
        return
    route, named = found
    sent = {
        name: "a file" if isinstance(value, io.IOBase) else str(value)
        for name, value in values.items()
    }
    try:
        validate(route.rules, {**named, **sent})
    except PveError as error:
        yield f"{method} {path}: {error.errors}"
    if "digest" in route.rules and "digest" not in values:
        yield f"{method} {path}: it could be bound to the configuration that was seen"


@contextlib.contextmanager
def recorded(
    simulator: RunningSimulator, tmp_path: Path, **options: str
) -> Iterator[tuple[Worker, RecordingClient]]:
    """A worker on an empty cluster; what it asked of it is in the schema."""
    simulator.control("POST", "reset")
    conf = configuration(tmp_path, proxmox_text(simulator, **options))
    [cluster] = settings.clusters(conf)
    client = RecordingClient(cluster)
    running = Worker(conf, [ProxmoxHypervisor(conf, cluster, client)])
    running.start()
    try:
        yield running, client
    finally:
        running.stop()
    assert {text for call in client.made for text in problems(call)} == set()


def test_every_request_is_in_the_schema(simulator: RunningSimulator, tmp_path: Path) -> None:
    with recorded(simulator, tmp_path) as (running, client):
        for build in (a_build(), a_build(), a_build(template=None)):
            assert running.run(build).ok
            for action in PowerAction:
                assert running.run(a_power(build, action)).ok
            simulator.fault(leak="L7", vmid=build.placed.vmid)
            assert running.run(a_destroy(build)).gone
            assert running.run(a_destroy(build)).gone
        simulator.fault(action="task-fail", path="/clone$")
        failed = a_build()
        assert running.run(failed).gone
    kinds = {(method, re.sub(r"\d+", "N", path)) for method, path, _ in client.made}
    assert len(kinds) > 20


def test_so_are_those_about_high_availability(simulator: RunningSimulator, tmp_path: Path) -> None:
    group = StrictGroup(ids.new_uuid(), apart=False)
    with recorded(simulator, tmp_path, write_affinity_rules="true") as (running, client):
        as_root(simulator).access.acl.put(
            path="/",
            roles="PVESysAdmin",
            users="micronova@pve",
            tokens="micronova@pve!agent",
            propagate=0,
        )
        members = [a_build(group=group, cloud="c") for _ in range(3)]
        for build in members:
            assert running.run(build).ok
        vmids = [build.placed.vmid for build in members]
        as_root(simulator).cluster.ha.resources(vmids[0]).put(state="started")
        affinity: Any = running.hypervisors[0]
        affinity.converge_affinity(
            "c", group, {one.placed.vmid: one.resource_id for one in members[:2]}
        )
        affinity.converge_affinity("c", group, {})
    asked = {(method, path.split("/")[2]) for method, path, _ in client.made if "/ha/" in path}
    both = [
        (method, noun) for method in ("post", "put", "delete") for noun in ("rules", "resources")
    ]
    assert asked >= set(both)
