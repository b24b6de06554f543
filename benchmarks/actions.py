"""Measure what each action costs the control plane, as JSON: ``python -m benchmarks.actions``.

It starts a cloud without hypervisors (the null driver), builds servers, and lets 8 clients ask for
each action on all of them, one action after the other. CPU is that of all services, database and
broker, for each server; `--statements` counts PostgreSQL's statements too (separate services).
The polls that wait for the end are part of it: a list each 0.1 s.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import os
import platform
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from benchmarks.cloud import CLIENTS, LOOK_SECONDS, Client, Meter, delete_all, wait
from benchmarks.sites import SITES, Site, Wanted

TIMEOUT_SECONDS = 60
LARGER = "m1.tiny"


@dataclass(frozen=True)
class Measured:
    """One action: what is asked, and the status that it ends in."""

    body: dict[str, Any]
    status: str
    bound_ms: float | None = None
    """The CPU that it may take together with the `counts_with` before it."""
    counts_with: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


#: in the order in which one server can take them
ACTIONS: dict[str, Measured] = {
    "pause": Measured({"pause": None}, "PAUSED", 12),
    "unpause": Measured({"unpause": None}, "ACTIVE", 12),
    "suspend": Measured({"suspend": None}, "SUSPENDED", 12),
    "resume": Measured({"resume": None}, "ACTIVE", 12),
    "stop": Measured({"os-stop": None}, "SHUTOFF"),
    "start": Measured({"os-start": None}, "ACTIVE"),
    "reboot": Measured({"reboot": {"type": "HARD"}}, "ACTIVE"),
    "resize": Measured({"resize": {"flavorRef": LARGER}}, "VERIFY_RESIZE"),
    "confirmResize": Measured({"confirmResize": None}, "ACTIVE", 40, "resize"),
    "migrate": Measured({"migrate": None}, "VERIFY_RESIZE"),
    "confirmResize of migrate": Measured({"confirmResize": None}, "ACTIVE"),
    "live-migration": Measured(
        {"os-migrateLive": {"host": None, "block_migration": "auto"}},
        "ACTIVE",
        30,
        headers={"OpenStack-API-Version": "compute 2.30"},
    ),
}


def ask(site: Site, server: str, action: Measured) -> None:
    """Ask for an action, and demand that it is accepted."""
    answer = requests.post(
        f"{site.base_url}/servers/{server}/action",
        json=action.body,
        headers={"X-Auth-Token": site.token, **action.headers},
        timeout=TIMEOUT_SECONDS,
    )
    answer.raise_for_status()


def at_rest(client: Client, servers: int, status: str) -> bool:
    """Return whether all are of the status, and nothing is being done to any."""
    found = client.get(f"/servers/detail?limit=1000&status={status}")["servers"]
    return len([one for one in found if one["OS-EXT-STS:task_state"] is None]) == servers


def flavor_of(site: Site, name: str) -> str:
    """Return a flavor's ID."""
    found = Client(site).get("/flavors")["flavors"]
    return next(str(one["id"]) for one in found if one["name"] == name)


def measure(site: Site, servers: int) -> dict[str, Any]:
    """Return the cost of each action for a server; a bound that is passed is marked."""
    client = Client(site)
    client.create("acted-on", servers)
    wait(lambda: at_rest(client, servers, "ACTIVE"), LOOK_SECONDS)
    there, larger = client.servers(), flavor_of(site, LARGER)
    found: dict[str, Any] = {}
    for name, action in ACTIONS.items():
        body = {"resize": {"flavorRef": larger}} if name == "resize" else action.body
        asked = dataclasses.replace(action, body=body)
        meter = Meter(site)
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(lambda one, asked=asked: ask(site, one, asked), there))
        wait(
            lambda action=action: at_rest(client, servers, action.status),  # type: ignore[misc]
            LOOK_SECONDS,
        )
        found[name] = {"seconds": round(meter.seconds, 2), **meter.read(servers)}
        if action.bound_ms is not None:
            before = found[action.counts_with]["cpu_ms"]["sum"] if action.counts_with else 0
            total = round(found[name]["cpu_ms"]["sum"] + before, 1)
            found[name] |= {"of_bound_ms": total, "bound_ms": action.bound_ms}
    delete_all(site)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print JSON; 1 if a bound is passed."""
    parser = argparse.ArgumentParser(prog="benchmarks.actions", description=__doc__.split("\n")[0])
    parser.add_argument("--cloud", choices=sorted(SITES), default="embedded")
    parser.add_argument("--hosts", type=int, default=8, help="hosts without a hypervisor")
    parser.add_argument("--servers", type=int, default=40)
    parser.add_argument("--statements", action="store_true", help="count PostgreSQL's statements")
    given = parser.parse_args(arguments)
    wanted = Wanted("null", given.hosts, given.statements)
    with (
        tempfile.TemporaryDirectory(prefix="micronova-bench-") as folder,
        SITES[given.cloud](Path(folder), wanted) as site,
    ):
        found = measure(site, given.servers)
    about = {
        "cloud": given.cloud,
        "servers": given.servers,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
    json.dump(about | {"actions": found}, sys.stdout, indent=2)
    sys.stdout.write("\n")
    passed = all(one.get("of_bound_ms", 0) <= one.get("bound_ms", 0) for one in found.values())
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
