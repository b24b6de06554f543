"""The lists of images, networks and ports say the same on every kind of database."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from common import ids
from db import engine, migrate, schema
from db.reads.images import images
from db.reads.images.images import Condition
from db.reads.keyset import MarkerNotFound, Page
from db.reads.networks import networks
from db.reads.servers import servers
from db.reads.servers.servers import Extent
from tests.fixtures.listings import (
    NOW,
    a_network,
    a_port,
    a_security_group,
    a_server,
    a_subnet,
    an_image,
)
from tests.fixtures.volumes import an_attachment, volume_id

HOUR = datetime.timedelta(hours=1)

pytestmark = pytest.mark.sampled(2)


@pytest.fixture
def connection(url: str) -> Iterator[sa.Connection]:
    """A reader's connection to a database with some of everything."""
    migrate.upgrade(url)
    rows = [
        an_image("a", properties={"os_distro": "debian", "hw:x.y": "1"}),
        an_image("b", properties={"os_distro": "Debian"}, size_bytes=2**40),
        an_image("c", status="deleted"),
        a_network("vmbr0"),
        a_network("vmbr1", vlan=40),
        a_subnet("vmbr0"),
        a_subnet("vmbr1", cidr="2001:db8::/64", gateway_ip=None),
        a_server(11),
        a_port(11),
        a_port(12, "other", bridge="vmbr1", subnet_id=None, ip=None),
    ]
    writer = engine.writer(url)
    with writer.begin() as opened:
        for table, values in rows:
            opened.execute(table.insert().values(**values))
    writer.dispose()
    reader = engine.reader(url)
    with reader.connect() as opened:
        yield opened
    reader.dispose()


def test_images(connection: sa.Connection) -> None:
    def names(*conditions: Condition, **properties: str) -> list[str]:
        order = [("name", False)]
        return [each.name for each in images.listing(connection, conditions, properties, order)]

    assert names() == ["a", "b"]
    assert names(os_distro="debian") == ["a"]
    assert names(**{"hw:x.y": "1"}) == ["a"]
    assert names(**{'"': "1"}) == []
    assert names(Condition("size_bytes", "gt", 2**39)) == ["b"]
    assert names(Condition("created_at", "eq", NOW)) == ["a", "b"]
    assert names(Condition("created_at", "lt", NOW)) == []
    found = images.get(connection, ids.named("image", "b"), None)
    assert found is not None
    assert (found.created_at, found.properties) == (NOW, {"os_distro": "Debian"})
    marker = Page(limit=1, marker=ids.named("image", "a"))
    order = [("created_at", True), ("name", False)]
    assert [each.name for each in images.listing(connection, order=order, page=marker)] == ["b"]
    with pytest.raises(MarkerNotFound):
        images.listing(connection, page=Page(1, "nothing"))


def test_networks(connection: sa.Connection) -> None:
    order = [("vlan", True)]
    first, second = networks.list_networks(connection, {}, order)
    assert (first.network_type, first.vlan, second.network_type) == ("vlan", 40, "flat")
    assert second.subnet_ids == (ids.named("subnet", "vmbr0/10.20.0.0/24"),)
    page = Page(limit=1, marker=first.id)
    assert networks.list_networks(connection, {}, order, page) == [second]
    page = Page(limit=1, marker=second.id, backwards=True)
    assert networks.list_networks(connection, {"network_type": ["vlan"]}, order, page) == [first]
    assert networks.list_networks(connection, {"vlan": [None, 7]}) == [second]


def test_subnets(connection: sa.Connection) -> None:
    (v6,) = networks.list_subnets(connection, {"ip_version": [6]})
    assert (v6.cidr, v6.gateway_ip) == ("2001:db8::/64", None)
    assert networks.list_subnets(connection, {"gateway_ip": [None]}) == [v6]


def test_ports(connection: sa.Connection) -> None:
    (port,) = networks.list_ports(connection, {"status": ["ACTIVE"]})
    assert (port.device_owner, port.host, port.bridge) == ("compute:az1", "pve1", "vmbr0")
    assert networks.list_ports(connection, {"ip_part": ["0.0.2"]}) == []
    assert networks.list_ports(connection, {"ip_part": ["20.0.1"]}) == [port]
    order = [("ip", False), ("device_owner", True)]
    bare, same = networks.list_ports(connection, {}, order)
    assert (bare.device_owner, bare.status, bare.host) == ("compute:nova", "DOWN", None)
    assert networks.list_ports(connection, {}, order, Page(1, bare.id)) == [same]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"tags": ["a", "b"]}, {14}),
        ({"tags": ["a"]}, {13, 14}),
        ({"tags": ["A"]}, set()),
        ({"tags-any": ["a", "é\"'%"]}, {13, 14, 15}),
        ({"not-tags": ["a", "b"]}, {11, 12, 13, 15}),
        ({"not-tags-any": ["a", "b"]}, {11, 12, 15}),
    ],
)
def test_ports_by_tags(url: str, query: dict[str, list[str]], found: set[int]) -> None:
    migrate.upgrade(url)
    tagged = {11: None, 12: [], 13: ["a"], 14: ["a", "b"], 15: ["é\"'%"]}
    writer = engine.writer(url)
    with writer.begin() as opened:
        for number, tags in tagged.items():
            table, values = a_port(number, tags=tags)
            opened.execute(table.insert().values(**values))
    with writer.connect() as opened:
        ports = {each.id: each.tags for each in networks.list_ports(opened, query)}
    writer.dispose()
    assert ports == {ids.named("port", str(one)): tagged[one] for one in found}


def test_what_belongs_to_servers(connection: sa.Connection, url: str) -> None:
    its, other = ids.named("server", "11"), ids.named("server", "12")
    first, second = NOW, NOW + datetime.timedelta(microseconds=1)
    rows = [
        *a_security_group("demo")[:1],
        (
            schema.port_security_groups,
            {
                "port_id": ids.named("port", "11"),
                "security_group_id": ids.named("security group", "demo"),
            },
        ),
        an_attachment(1, server_uuid=its, created_at=second, delete_on_termination=True),
        an_attachment(2, server_uuid=its, created_at=first),
        a_server(12),
    ]
    writer = engine.writer(url)
    with writer.begin() as opened:
        for table, values in rows:
            opened.execute(table.insert().values(**values))
    writer.dispose()
    found = {
        one.uuid: one
        for one in servers.list_servers(connection, servers.Filters(), extent=Extent.DETAIL)
    }
    shown = [(volume, bool(ends)) for _, _, volume, ends in sorted(found[its].volumes or ())]
    assert shown == [(volume_id(2), False), (volume_id(1), True)]
    assert found[its].group_names == ["default"]
    assert (found[other].volumes or [], found[other].group_names or []) == ([], [])
    assert servers.find(connection, its, extent=Extent.HOST) == found[its]
    record = servers.find(connection, its)
    assert record is not None
    assert (record.volumes, record.group_names) == (None, None)


def test_lists_read_what_they_show(connection: sa.Connection, url: str) -> None:
    writer = engine.writer(url)
    with writer.begin() as opened:
        table, values = a_server(12, user_data="bG9uZw==", created_at=NOW + HOUR)
        opened.execute(table.insert().values(**values))
    writer.dispose()
    named, limited = servers.Filters(exact={"name": ["server-12"]}), servers.Filters()
    assert servers.list_names(connection, named) == [(ids.named("server", "12"), "server-12")]
    assert [one.name for one in servers.list_names(connection, limited, limit=1)] == ["server-12"]
    (whole,) = servers.list_servers(connection, named)
    (shown,) = servers.list_servers(connection, named, user_data=False)
    assert (whole.user_data, shown.user_data) == ("bG9uZw==", None)
    assert dataclasses.replace(whole, user_data=None) == shown
