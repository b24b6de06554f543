"""The Network API over a database with a few networks and ports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from api.network.app import make_app
from tests.fixtures import auth
from tests.fixtures.listings import (
    a_conf,
    a_database,
    a_network,
    a_port,
    a_server,
    a_subnet,
    mounted,
    served,
)


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sa.Engine]:
    """Three bridges, two subnets, and ports of two projects."""
    folder: Path = tmp_path_factory.mktemp("network")
    rows = [
        a_network("vmbr0"),
        a_network("vmbr1", vlan=40, mtu=9000),
        a_network("vmbr2"),
        a_subnet("vmbr0"),
        a_subnet("vmbr1", "10.30.0.0/24", gateway_ip=None, dns_nameservers=[]),
        a_server(11),
        a_server(12, power_state=4, vm_state="stopped", host=None, availability_zone=None),
        a_server(21, "other"),
        a_port(11),
        a_port(12),
        a_port(21, "other"),
        a_port(13, bridge="vmbr2", subnet_id=None, ip=None),
    ]
    engine = a_database(folder, rows)
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def url(database: sa.Engine) -> Iterator[str]:
    """The API's URL, mounted as in the catalog."""
    app = make_app(a_conf(), database, auth.header_auth)
    with served(mounted(app, "/network")) as root:
        yield f"{root}/network"
