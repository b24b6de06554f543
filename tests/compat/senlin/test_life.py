"""`openstack cluster …` of python-senlinclient, unmodified: the life of a group.

`tox -e senlin` installs it in an environment beside, as its commands don't show anything with
osc-lib 4 and later. MICRONOVA_TEST_SENLIN is the program `openstack` of that environment.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.functional.cloud import EmbeddedCloud, embedded_cloud
from tests.functional.waiting import eventually

OPENSTACK = os.environ.get("MICRONOVA_TEST_SENLIN", "")

pytestmark = [
    pytest.mark.timeout(2400),
    pytest.mark.skipif(not OPENSTACK, reason="python-senlinclient is not installed"),
]


class Client:
    """Runs `openstack` of that environment as a user does, and reads what it prints."""

    def __init__(self, cloud: EmbeddedCloud, user: str = "micronova-demo") -> None:
        self._environment = cloud.environment(user)

    def do(self, *words: str) -> str:
        """Return what it prints; it must have worked."""
        done = subprocess.run(
            [OPENSTACK, *words],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, f"openstack {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def ask(self, *words: str) -> Any:
        """Return what it prints as data."""
        return json.loads(self.do(*words, "-f", "json"))


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCloud]:
    with embedded_cloud(tmp_path_factory.mktemp("senlin")) as running:
        yield running


@pytest.fixture
def openstack(cloud: EmbeddedCloud) -> Client:
    return Client(cloud)


@pytest.fixture
def admin(cloud: EmbeddedCloud) -> Client:
    """The shell of the cloud's administrator."""
    return Client(cloud, "micronova-admin")


NAME = "web"
NEWER = "web-2"


def nodes(openstack: Client) -> dict[str, dict[str, Any]]:
    """The cluster's nodes by their IDs."""
    listed = openstack.ask("cluster", "members", "list", NAME, "--full-id")
    return {one["id"]: one for one in listed}


def settled(openstack: Client, size: int) -> Any:
    """The cluster once it has so many nodes that work."""

    def look() -> Any:
        found = openstack.ask("cluster", "show", NAME)
        statuses = [one["status"] for one in nodes(openstack).values()]
        return found if (found["status"], statuses) == ("ACTIVE", ["ACTIVE"] * size) else None

    return eventually(look, 150)


def written(folder: Path, file: str, kind: str, version: str, **properties: Any) -> str:
    """The path of a file with a spec."""
    path = folder / file
    spec = {"type": kind, "version": version, "properties": properties}
    path.write_text(json.dumps(spec), encoding="utf-8")
    return str(path)


def make_profile(openstack: Client, folder: Path, name: str, image: str) -> None:
    """Make a profile of an image."""
    file = written(folder, f"{name}.json", "os.nova.server", "1.0", flavor="m1.small", image=image)
    made = openstack.ask("cluster", "profile", "create", "--spec-file", file, name)
    assert made["type"] == "os.nova.server-1.0"


def test_the_life_of_a_group(
    cloud: EmbeddedCloud, openstack: Client, admin: Client, tmp_path: Path
) -> None:
    make_profile(openstack, tmp_path, NAME, "debian-12")
    # Create 3.
    sizes = ("--desired-capacity", "3", "--min-size", "0", "--max-size", "8")
    made = openstack.ask("cluster", "create", "--profile", NAME, *sizes, NAME)
    assert made["name"] == NAME
    settled(openstack, 3)
    # Scale to 6.
    assert "accepted" in openstack.do("cluster", "expand", "--count", "1", NAME)
    settled(openstack, 4)
    openstack.do("cluster", "resize", "--capacity", "6", NAME)
    settled(openstack, 6)
    lose_a_node(cloud, openstack, admin)
    settled(openstack, 6)
    shrink_by_policy(openstack, tmp_path)
    # Another image.
    make_profile(openstack, tmp_path, NEWER, "cirros")
    before = {one["physical_id"] for one in nodes(openstack).values()}
    openstack.do("cluster", "update", "--profile", NEWER, NAME)
    eventually(lambda: not before & {one["physical_id"] for one in all_active(openstack)}, 120)
    settled(openstack, 2)
    images = {
        openstack.ask("server", "show", one["physical_id"])["image"]
        for one in nodes(openstack).values()
    }
    assert {one.partition(" ")[0] for one in images} == {"cirros"}
    scale_by_webhook(openstack)
    exchange_nodes(openstack)
    openstack.do("cluster", "check", NAME)
    openstack.do("cluster", "recover", NAME)
    openstack.do("cluster", "policy", "detach", "--policy", NAME, NAME)
    assert openstack.ask("cluster", "action", "list")
    assert openstack.ask("cluster", "event", "list")
    openstack.do("cluster", "delete", "--force", NAME)
    eventually(lambda: NAME not in named(openstack, "cluster", "list"), 60)
    openstack.do("cluster", "policy", "delete", "--force", NAME)
    for profile in (NAME, NEWER):
        openstack.do("cluster", "profile", "delete", "--force", profile)
    assert not openstack.ask("cluster", "node", "list")
    assert NAME not in openstack.do("server", "list")


def named(openstack: Client, *words: str) -> set[str]:
    """The names in a list."""
    return {one["name"] for one in openstack.ask(*words)}


def all_active(openstack: Client) -> list[dict[str, Any]]:
    """The cluster's nodes once all are active."""

    def look() -> Any:
        found = list(nodes(openstack).values())
        return found if {one["status"] for one in found} == {"ACTIVE"} else None

    return list(eventually(look, 60))


def lose_a_node(cloud: EmbeddedCloud, openstack: Client, admin: Client) -> None:
    """A node of Proxmox VE is lost for good: other nodes get what it ran."""
    servers = admin.ask("server", "list", "--all-projects", "--long", "-c", "ID", "-c", "Host")
    hosts = {one["ID"]: one["Host"] for one in servers}
    first = next(iter(nodes(openstack).values()))["physical_id"]
    lost = hosts[first]
    order = cloud.control("POST", "faults", action="node-down", node=lost)
    eventually(lambda: openstack.ask("cluster", "show", NAME)["status"] == "WARNING", 60)
    admin.do("compute", "service", "set", "--down", lost, "nova-compute")
    gone = {uuid for uuid, host in hosts.items() if host == lost}
    eventually(lambda: not gone & {one["physical_id"] for one in all_active(openstack)}, 120)
    cloud.control("DELETE", "faults", id=order["id"])
    admin.do("compute", "service", "set", "--up", lost, "nova-compute")
    # What was left there is removed.
    left = ("server", "list", "--all-projects")
    eventually(lambda: not gone & {one["ID"] for one in admin.ask(*left)}, 120)


def shrink_by_policy(openstack: Client, folder: Path) -> None:
    """Shrink to two nodes: the youngest leave."""
    kind, version = "senlin.policy.deletion", "1.1"
    file = written(folder, "policy.json", kind, version, criteria="YOUNGEST_FIRST")
    openstack.ask("cluster", "policy", "create", "--spec-file", file, NAME)
    openstack.do("cluster", "policy", "attach", "--policy", NAME, NAME)
    bound = openstack.ask("cluster", "policy", "binding", "list", NAME)
    assert [one["policy_name"] for one in bound] == [NAME]
    openstack.do("cluster", "shrink", "--count", "4", NAME)
    settled(openstack, 2)


def scale_by_webhook(openstack: Client) -> None:
    """An alert scales it to three nodes."""
    asked = ("--cluster", NAME, "--action", "CLUSTER_SCALE_OUT", "--params", "count=1")
    receiver = openstack.ask("cluster", "receiver", "create", *asked, NAME)
    channel = receiver["channel"]
    url = (json.loads(channel) if isinstance(channel, str) else channel)["alarm_url"]
    assert requests.post(url, timeout=30).status_code == 202
    settled(openstack, 3)
    openstack.do("cluster", "receiver", "delete", "--force", NAME)
    assert requests.post(url, timeout=30).status_code == 404


def exchange_nodes(openstack: Client) -> None:
    """A node of no cluster is added, leaves with its server, and takes another one's place."""
    alone = openstack.ask("cluster", "node", "create", "--profile", NEWER, "alone")["id"]

    def status() -> Any:
        return openstack.ask("cluster", "node", "show", alone)["status"]

    eventually(lambda: status() == "ACTIVE", 60)
    openstack.do("cluster", "members", "add", "--nodes", "alone", NAME)
    settled(openstack, 4)
    openstack.do("cluster", "members", "del", "--nodes", "alone", NAME)
    settled(openstack, 3)
    assert status() == "ACTIVE"
    former = next(iter(nodes(openstack)))
    openstack.do("cluster", "members", "replace", "--nodes", f"{former}={alone}", NAME)
    settled(openstack, 3)
    found = nodes(openstack)
    assert alone in found and former not in found
    openstack.do("cluster", "members", "del", "--nodes", alone, "-d", "True", NAME)
    settled(openstack, 2)
    openstack.do("cluster", "node", "delete", "--force", former)
    eventually(lambda: len(openstack.ask("cluster", "node", "list")) == 2, 60)
