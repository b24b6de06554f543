"""One embedded cloud for all tests of this folder; the long tier adds one without Proxmox VE."""

from __future__ import annotations

import dataclasses
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proxmoxer import ProxmoxAPI

from tests.fixtures import null
from tests.functional import programs
from tests.functional.cloud import EmbeddedCloud, embedded_cloud
from tests.shared import Shared

_CLOUD: Shared[EmbeddedCloud] = Shared("site")

OPENSTACK = Path(sys.executable).with_name("openstack")
TIMEOUT_SECONDS = 400


class Client:
    """Runs `openstack` as a user does, and reads what it prints."""

    def __init__(self, site: Site, user: str = "micronova") -> None:
        self._environment = site.cloud.environment(user)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return programs.run("openstack", words, self._environment, TIMEOUT_SECONDS)

    def program(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the program itself, in an interpreter of its own."""
        return subprocess.run(
            [str(OPENSTACK), *words],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )

    def do(self, *words: str) -> str:
        """Return what it prints; it must have worked."""
        done = self.run(*words)
        assert done.returncode == 0, f"openstack {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def ask(self, *words: str) -> Any:
        """Return what it prints as data."""
        return json.loads(self.do(*words, "-f", "json"))

    def names(self, *words: str) -> set[str]:
        return {row["Name"] for row in self.ask(*words)}


@dataclasses.dataclass(frozen=True)
class Site:
    """A cloud, and the names that a user of it takes."""

    cloud: EmbeddedCloud
    image: str
    images: frozenset[str]
    flavor: str
    hosts: int
    simulated: bool

    def proxmox(self) -> Any:
        """The simulated Proxmox VE's API, as its root uses it."""
        folder = self.cloud.simulator
        endpoints = json.loads((folder / "endpoints.json").read_text(encoding="utf-8"))
        return ProxmoxAPI(
            endpoints[0]["url"].removeprefix("https://"),
            user="root@pam",
            password=(folder / "root-password").read_text(encoding="utf-8").strip(),
            verify_ssl=str(folder / "ca.pem"),
        )


@pytest.fixture(scope="module", params=["proxmox", pytest.param("null", marks=pytest.mark.long)])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The cloud of one driver."""
    driver = request.param
    options = {"proxmox": {"driver": driver, "speed": 50}, "null": {"driver": null.DRIVER}}[driver]
    folder = tmp_path_factory.mktemp(driver)
    cloud = _CLOUD.get(lambda: embedded_cloud(folder, nodes=3, **options), driver)
    images = frozenset({"debian-12", "ubuntu-24.04", "cirros"})
    return Site(cloud, "debian-12", images, "m1.small", 3, driver == "proxmox")


@pytest.fixture
def client(site: Site) -> Client:
    """The shell of an administrator who is a project's member."""
    return Client(site)


@pytest.fixture
def admin(site: Site) -> Client:
    """The shell of the cloud's administrator."""
    return Client(site, "micronova-admin")


@pytest.fixture
def host(admin: Client) -> str:
    """One of the hosts."""
    services = admin.ask("compute", "service", "list", "--service", "nova-compute")
    return str(services[0]["Host"])


@pytest.fixture
def volume_type(client: Client) -> str:
    """The type of the storage that all hosts share, where there is one."""
    return max(client.names("volume", "type", "list"), key=lambda name: (name == "shared", name))


@pytest.fixture
def connection(site: Site) -> Any:
    """The same through openstacksdk."""
    return site.cloud.connection("micronova")


@pytest.fixture
def server(client: Client, name: str) -> Iterator[str]:
    """The UUID of a server that is active."""
    made = client.ask(
        *("server", "create", "--image", "cirros", "--flavor", "m1.small"),
        *("--network", "vmbr0", "--wait", name),
    )
    yield made["id"]
    client.run("server", "delete", "--force", "--wait", made["id"])


_names = itertools.count(1)


@pytest.fixture
def name() -> str:
    """A name that no other test takes."""
    return f"web-{next(_names)}"
