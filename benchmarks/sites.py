"""Running clouds to measure: embedded, or of separate processes."""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.reading.processes import tree
from benchmarks.reading.statements import SETTINGS, Statements

START_SECONDS = 90
#: nodes of the simulated cluster
SIMULATED = 3


@dataclass(frozen=True)
class Site:
    """A running cloud: its addresses and processes."""

    base_url: str
    token: str
    flavor: str
    image: str
    network: str
    processes: Callable[[], dict[str, list[int]]]
    """Returns {service: process IDs}, including database and broker if they are processes."""
    network_url: str
    """The Networking API's, with its version."""
    volume_url: str
    """The Block Storage API's, with its version and without a project."""
    project: str
    """Whose token it is."""
    statements: Statements | None = None


@dataclass(frozen=True)
class Wanted:
    """The options of the command line."""

    driver: str
    hosts: int
    statements: bool
    compact: bool = False
    """Whether separate processes are as few as can be."""


@contextlib.contextmanager
def embedded(folder: Path, wanted: Wanted) -> Iterator[Site]:
    """Run `micronova up`."""
    from tests.fixtures import null
    from tests.functional.cloud import embedded_cloud

    driver = null.DRIVER if wanted.driver == "null" else wanted.driver
    began = time.monotonic()
    with embedded_cloud(folder, audited=False, driver=driver, nodes=wanted.hosts) as cloud:
        sys.stderr.write(f"up after {time.monotonic() - began:.1f} s\n")
        yield site_of(cloud.connection, lambda: by_command(cloud.process.pid))


@contextlib.contextmanager
def distributed(folder: Path, wanted: Wanted) -> Iterator[Site]:
    """Run every service as separate processes on PostgreSQL, which writes through, and RabbitMQ.

    Two agents share the hosts of the null driver; the simulated cluster has three nodes.
    """
    from tests.functional.distributed import distributed_cloud

    began, made_up = time.monotonic(), wanted.driver == "null"
    with distributed_cloud(
        folder,
        audited=False,
        null_hosts=wanted.hosts if made_up else 0,
        compact=wanted.compact,
        postgres_settings={"fsync": "on"} | (SETTINGS if wanted.statements else {}),
    ) as cloud:
        wait_for_hosts(cloud.connection("micronova"), wanted.hosts if made_up else SIMULATED)
        sys.stderr.write(f"up after {time.monotonic() - began:.1f} s\n")

        def processes() -> dict[str, list[int]]:
            found = {
                "postgresql": tree(cloud.postgres.pid),
                "rabbitmq": tree(cloud.broker.pid),
            }
            for name, child in cloud.children.items():
                if child.pid is not None:
                    service = re.sub(r"-.*", "", name)
                    kind = {"compute": "agents"}.get(service, service)
                    kind = "api" if name == "compute" else kind
                    found.setdefault(kind, []).extend(tree(child.pid))
            return found

        statements = Statements(cloud.postgres) if wanted.statements else None
        yield site_of(cloud.connection, processes, statements)


def wait_for_hosts(admin: Any, hosts: int) -> None:
    """Return when placement offers so many hosts; agents publish again what it did not take."""
    from tests.functional.waiting import eventually

    def offered() -> bool:
        url = "/allocation_candidates?resources=VCPU:1"
        answer = admin.placement.get(url, microversion="1.10")
        return len(answer.json()["provider_summaries"]) >= hosts

    eventually(offered, START_SECONDS)


def site_of(
    connect: Callable[[str], Any],
    processes: Callable[[], dict[str, list[int]]],
    statements: Statements | None = None,
) -> Site:
    admin = connect("micronova")
    unlimited = dict.fromkeys(("instances", "cores", "ram"), -1)
    project = admin.current_project_id
    admin.compute.put(f"/os-quota-sets/{project}", json={"quota_set": unlimited})
    images = sorted(admin.image.images(), key=lambda one: (one.size or 0, one.name))
    return Site(
        base_url=admin.compute.get_endpoint(),
        token=admin.session.get_token(),
        flavor=admin.compute.find_flavor("m1.nano", ignore_missing=False).id,
        image=images[0].id,
        network=admin.network.find_network("vmbr0", ignore_missing=False).id,
        processes=processes,
        network_url=f"{admin.network.get_endpoint().rstrip('/').removesuffix('/v2.0')}/v2.0",
        volume_url=f"{admin.volume.get_endpoint().split('/v3')[0]}/v3",
        project=project,
        statements=statements,
    )


def by_command(pid: int) -> dict[str, list[int]]:
    """Return the processes of `micronova up` by service."""
    found: dict[str, list[int]] = {"supervisor": [pid]}
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        line = Path(f"/proc/{child}/cmdline").read_text()
        name = next((one for one in ("simulator", "cloud") if one in line), "keystone")
        found[name] = tree(int(child))
    return found


SITES = {"embedded": embedded, "distributed": distributed}
