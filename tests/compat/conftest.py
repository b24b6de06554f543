"""One embedded cloud for each driver, shared by all tests of this folder."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import pytest

from tests.functional.cloud import EmbeddedCloud, embedded_cloud


@dataclasses.dataclass(frozen=True)
class Site:
    """A cloud, and the names that a user of it takes."""

    cloud: EmbeddedCloud
    image: str
    images: frozenset[str]
    flavor: str
    hosts: int
    simulated: bool


@pytest.fixture(scope="session", params=["proxmox", "null"])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """The cloud of one driver."""
    driver = request.param
    options = {"driver": driver, "nodes": 3}
    if driver == "proxmox":
        options["speed"] = 50
    with embedded_cloud(tmp_path_factory.mktemp(driver), **options) as cloud:
        images = frozenset({"debian-12", "ubuntu-24.04", "cirros"})
        yield Site(cloud, "debian-12", images, "m1.small", 3, driver == "proxmox")


_names = itertools.count(1)


@pytest.fixture
def name() -> str:
    """A name that no other test takes."""
    return f"web-{next(_names)}"
