"""One embedded cloud for all tests of this folder; the long tier adds one without Proxmox VE."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from tests.functional.cloud import EmbeddedCloud, embedded_cloud
from tests.shared import Shared

_CLOUD: Shared[EmbeddedCloud] = Shared("site")


@dataclasses.dataclass(frozen=True)
class Site:
    """A cloud, and the names that a user of it takes."""

    cloud: EmbeddedCloud
    image: str
    images: frozenset[str]
    flavor: str
    hosts: int
    simulated: bool


@pytest.fixture(scope="module", params=["proxmox", pytest.param("null", marks=pytest.mark.long)])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The cloud of one driver."""
    driver = request.param
    options = {"driver": driver, "nodes": 3}
    if driver == "proxmox":
        options["speed"] = 50
    folder = tmp_path_factory.mktemp(driver)
    cloud = _CLOUD.get(lambda: embedded_cloud(folder, **options), driver)
    images = frozenset({"debian-12", "ubuntu-24.04", "cirros"})
    return Site(cloud, "debian-12", images, "m1.small", 3, driver == "proxmox")


_names = itertools.count(1)


@pytest.fixture
def name() -> str:
    """A name that no other test takes."""
    return f"web-{next(_names)}"
