"""Every request of the driver is one that Proxmox VE's own schema takes."""

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
from tests.fixtures.pve_records import schema_tree
from tests.fixtures.pve_schema import parameters
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

_NUMBERED = re.compile(r"^([a-z]+)\d+$")

Call = tuple[str, str, Mapping[str, Any]]


class RecordingClient(Client):
    """Sends as ever and keeps what was asked."""

    def __init__(self, cluster: settings.ClusterSettings) -> None:
        super().__init__(cluster)
        self.made: list[Call] = []

    def _request(self, method: str, path: str, values: dict[str, Any]) -> Any:
        self.made.append((method, path, dict(values)))
        return super()._request(method, path, values)


def paths(tree: Any) -> Iterator[tuple[re.Pattern[str], Any]]:
    """Every path of the schema as a pattern, with its methods."""
    for node in tree:
        names = re.findall(r"{([^}]+)}", node["path"])
        pattern = re.sub(r"\\{[^}]+\\}", "([^/]+)", re.escape(node["path"]))
        # A volume id holds a slash.
        pattern = pattern.replace("content/([^/]+)", "content/(.+)")
        if "info" in node:
            yield re.compile(f"{pattern}$"), (names, node["info"])
        yield from paths(node.get("children", ()))


def problems(value: Any, rule: Mapping[str, Any]) -> Iterator[str]:
    kind = rule.get("type")
    if isinstance(value, io.IOBase):
        return
    if kind == "boolean" and value not in (0, 1):
        yield f"{value!r} is no boolean"
    if kind == "integer":
        number = int(value)
        low, high = rule.get("minimum", number), rule.get("maximum", number)
        if not float(low) <= number <= float(high):
            yield f"{number} is not from {low} to {high}"
    if "enum" in rule and value not in rule["enum"]:
        yield f"{value!r} is none of {rule['enum']}"
    if "pattern" in rule and not re.match(f"^(?:{rule['pattern']})$", str(value)):
        yield f"{value!r} doesn't match {rule['pattern']}"
    if len(str(value)) > int(rule.get("maxLength", 1 << 30)):
        yield f"{value!r} is too long"


def check(call: Call, known: list[tuple[re.Pattern[str], Any]]) -> Iterator[str]:
    method, path, values = call
    matches = [
        (names, info[method.upper()], match)
        for pattern, (names, info) in known
        if (match := pattern.match(f"/{path}")) and method.upper() in info
    ]
    if not matches:
        yield f"{method} {path}: there is no such method"
        return
    names, info, match = matches[0]
    given = dict(zip(names, match.groups(), strict=True)) | values
    rules = parameters(info)
    for name, value in given.items():
        numbered = _NUMBERED.match(name)
        rule = rules.get(name) or rules.get(f"{numbered[1]}[n]" if numbered else "")
        if rule is None:
            yield f"{method} {path}: there is no parameter {name}"
            continue
        yield from (f"{method} {path} {name}: {text}" for text in problems(value, rule))
    if "digest" in rules and "digest" not in given:
        yield f"{method} {path}: it could be bound to the configuration that was seen"
    for name, rule in rules.items():
        if not rule.get("optional") and name not in given and "[n]" not in name:
            yield f"{method} {path}: {name} is missing"


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
    known = list(paths(schema_tree()))
    assert len(list(check(("post", "nodes/pve1/qemu", {"bogus": 1}), known))) == 2
    assert {text for call in client.made for text in check(call, known)} == set()


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
            path="/", roles="PVESysAdmin", users="micronova@pve", propagate=0
        )
        members = [a_build(group=group, cloud="c") for _ in range(3)]
        for build in members:
            assert running.run(build).ok
        vmids = [build.placed.vmid for build in members]
        as_root(simulator).cluster.ha.resources(vmids[0]).put(state="started")
        affinity: Any = running.hypervisors[0]
        affinity.converge_affinity(
            "c", group, {one.placed.vmid: one.server_uuid for one in members[:2]}
        )
        affinity.converge_affinity("c", group, {})
    asked = {(method, path.split("/")[2]) for method, path, _ in client.made if "/ha/" in path}
    both = [
        (method, noun) for method in ("post", "put", "delete") for noun in ("rules", "resources")
    ]
    assert asked >= set(both)
