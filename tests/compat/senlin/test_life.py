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
    pytest.mark.timeout(900),
    pytest.mark.skipif(not OPENSTACK, reason="python-senlinclient is not installed"),
]


class Client:
    """Runs `openstack` of that environment as a user does, and reads what it prints."""

    def __init__(self, cloud: EmbeddedCloud) -> None:
        self._environment = cloud.environment("micronova-demo")

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


def settled(openstack: Client, name: str, size: int) -> Any:
    """The cluster once it has so many nodes that work."""

    def look() -> Any:
        found = openstack.ask("cluster", "show", name)
        nodes = openstack.ask("cluster", "members", "list", name)
        statuses = [one["status"] for one in nodes]
        return found if (found["status"], statuses) == ("ACTIVE", ["ACTIVE"] * size) else None

    return eventually(look, 150)


def test_the_life_of_a_group(openstack: Client, tmp_path: Path) -> None:
    name = "web"

    def written(file: str, content: Any) -> str:
        path = tmp_path / file
        path.write_text(json.dumps(content), encoding="utf-8")
        return str(path)

    properties = {"flavor": "m1.small", "image": "debian-12"}
    spec = {"type": "os.nova.server", "version": "1.0", "properties": properties}
    profile = ("cluster", "profile", "create", "--spec-file", written("profile.json", spec), name)
    assert openstack.ask(*profile)["type"] == "os.nova.server-1.0"
    sizes = ("--desired-capacity", "2", "--min-size", "0", "--max-size", "5")
    made = openstack.ask("cluster", "create", "--profile", name, *sizes, name)
    assert made["name"] == name
    settled(openstack, name, 2)
    assert "accepted" in openstack.do("cluster", "expand", "--count", "1", name)
    settled(openstack, name, 3)
    deletion = {"type": "senlin.policy.deletion", "version": "1.1", "properties": {}}
    policy = ("cluster", "policy", "create", "--spec-file", written("policy.json", deletion), name)
    openstack.ask(*policy)
    openstack.do("cluster", "policy", "attach", "--policy", name, name)
    assert [
        one["policy_name"] for one in openstack.ask("cluster", "policy", "binding", "list", name)
    ] == [name]
    openstack.do("cluster", "shrink", "--count", "2", name)
    settled(openstack, name, 1)
    asked = ("--cluster", name, "--action", "CLUSTER_SCALE_OUT", "--params", "count=1")
    receiver = openstack.ask("cluster", "receiver", "create", *asked, name)
    channel = receiver["channel"]
    url = (json.loads(channel) if isinstance(channel, str) else channel)["alarm_url"]
    assert requests.post(url, timeout=30).status_code == 202
    settled(openstack, name, 2)
    openstack.do("cluster", "resize", "--capacity", "1", name)
    settled(openstack, name, 1)
    openstack.do("cluster", "check", name)
    openstack.do("cluster", "recover", name)
    openstack.do("cluster", "policy", "detach", "--policy", name, name)
    openstack.do("cluster", "receiver", "delete", "--force", name)
    assert openstack.ask("cluster", "action", "list")
    assert openstack.ask("cluster", "event", "list")
    openstack.do("cluster", "delete", "--force", name)

    def gone() -> bool:
        return name not in {one["name"] for one in openstack.ask("cluster", "list")}

    eventually(gone, 60)
    openstack.do("cluster", "policy", "delete", "--force", name)
    openstack.do("cluster", "profile", "delete", "--force", name)
    assert name not in openstack.do("server", "list")
