"""The cloud of `tests/compat`, and a server in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.compat.conftest import Site, site
from tests.contract.gophercloud import Gophercloud

__all__ = ["site"]


@pytest.fixture
def cloud(site: Site) -> Gophercloud:
    """What Go's clients ask as a project's member."""
    return Gophercloud(site)


@pytest.fixture
def shared_storage(site: Site) -> None:
    """A storage that all hosts have."""
    if not site.simulated:
        pytest.skip("hosts without a hypervisor share no storage")


@pytest.fixture(scope="module")
def node(site: Site) -> Iterator[Any]:
    """A server that is active."""
    connection = site.cloud.connection("micronova-demo")
    made = connection.create_server(
        "node", image="cirros", flavor="m1.tiny", network="vmbr0", wait=True, timeout=120
    )
    yield made
    connection.delete_server(made.id, wait=True, timeout=60)
