"""Unmodified clients against the Network API: openstacksdk, and the openstack command."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openstack.connection
import pytest
import sqlalchemy as sa
from openstack import exceptions

from api.image.app import make_app as make_image_app
from common import ids
from tests.fixtures import auth
from tests.fixtures.listings import a_conf, a_database, an_image, mounted, served
from tests.functional import programs

pytestmark = pytest.mark.filterwarnings("ignore")

Command = Callable[..., Any]


@pytest.fixture
def cloud(url: str) -> Iterator[openstack.connection.Connection]:
    """A connection with a member's token, as after a login."""
    connection = openstack.connection.Connection(
        auth_type="admin_token",
        auth={"endpoint": url, "token": auth.MEMBER},
        network_endpoint_override=url,
        region_name="RegionOne",
    )
    yield connection
    connection.close()


def test_things_are_found_by_name_and_by_id(cloud: openstack.connection.Connection) -> None:
    network_id = ids.named("network", "vmbr0")
    for key in ("vmbr0", network_id):
        network = cloud.network.find_network(key, ignore_missing=False)
        assert (network.id, network.name, network.mtu) == (network_id, "vmbr0", 1500)
        assert (network.is_shared, network.is_router_external) == (True, False)
    assert cloud.get_network("vmbr1").subnet_ids == cloud.network.find_network("vmbr1").subnet_ids
    subnet = cloud.network.find_subnet("vmbr0-10.20.0.0-24", ignore_missing=False)
    assert subnet.network_id == network_id
    assert cloud.network.find_network("nothing") is None
    assert cloud.network.find_security_group("default") is None


def test_ports_of_a_server(cloud: openstack.connection.Connection) -> None:
    server_id = ids.named("server", "11")
    (port,) = cloud.network.ports(device_id=server_id)
    assert port.fixed_ips[0]["ip_address"] == "10.20.0.11"
    assert [each.id for each in cloud.search_ports(filters={"device_id": server_id})] == [port.id]
    assert len(cloud.list_ports()) == 3
    assert len(list(cloud.network.ports(limit=1))) == 3


def test_what_the_cloud_layer_looks_into(cloud: openstack.connection.Connection) -> None:
    assert cloud.list_floating_ips() == []
    assert cloud.list_security_groups() == []
    assert cloud.list_routers() == []
    network = cloud.network
    for several in (network.agents, network.availability_zones, network.service_providers):
        assert list(several()) == []
    for several in (network.subnet_pools, network.address_scopes, network.address_groups):
        assert list(several()) == []
    for several in (network.trunks, network.segments, network.qos_policies):
        assert list(several()) == []
    assert network.find_router("x") is None
    assert network.find_ip("x") is None
    assert network.find_subnet_pool("x") is None
    with pytest.raises(exceptions.NotFoundException, match="This cloud has no routers"):
        network.create_router(name="x")
    internal = {network.name for network in cloud.get_internal_networks()}
    assert internal == {"vmbr0", "vmbr1", "vmbr2"}
    assert cloud.get_external_networks() == []
    assert cloud.get_nat_destination().name == "vmbr0"
    assert cloud._has_neutron_extension("provider")
    assert not cloud._has_neutron_extension("router")


def test_changes_are_refused_in_words(cloud: openstack.connection.Connection) -> None:
    with pytest.raises(exceptions.ForbiddenException, match="read-only"):
        cloud.network.create_network(name="new")
    with pytest.raises(exceptions.ForbiddenException, match="read-only"):
        cloud.network.delete_network(ids.named("network", "vmbr0"))


@pytest.fixture(scope="module")
def image_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sa.Engine]:
    """A database with one image."""
    folder = tmp_path_factory.mktemp("command")
    engine = a_database(folder, [an_image("debian-12", properties={"os_distro": "debian"})])
    yield engine
    engine.dispose()


@pytest.fixture
def command(url: str, image_database: sa.Engine, tmp_path: Path) -> Iterator[Command]:
    """Run `openstack …` as the member, or as the administrator; gives what its JSON says."""
    image_app = mounted(make_image_app(a_conf(), image_database, auth.header_auth), "/image")
    with served(image_app) as root:
        clouds = {
            name: {
                "auth_type": "admin_token",
                "auth": {"endpoint": url, "token": token},
                "network_endpoint_override": url,
                "image_endpoint_override": f"{root}/image",
                "region_name": "RegionOne",
            }
            for name, token in (("member", auth.MEMBER), ("admin", auth.ADMIN))
        }
        config = tmp_path / "clouds.yaml"
        config.write_text(json.dumps({"clouds": clouds}))

        def run(*words: str, cloud: str = "member", fails: bool = False) -> Any:
            form = () if fails else ("-f", "json")
            done = programs.run(
                "openstack",
                ["--os-cloud", cloud, *words, *form],
                {**os.environ, "OS_CLIENT_CONFIG_FILE": str(config)},
            )
            assert bool(done.returncode) == fails, done.stderr
            return done.stderr if fails else json.loads(done.stdout)

        yield run


def test_the_command_lists_and_shows(command: Command) -> None:
    assert [row["Name"] for row in command("network", "list", "--long")] == [
        row["Name"] for row in command("network", "list")
    ]
    network = command("network", "show", "vmbr1", cloud="admin")
    assert (network["name"], network["provider:segmentation_id"]) == ("vmbr1", 40)
    assert {row["Subnet"] for row in command("subnet", "list", "--network", "vmbr0")} == {
        "10.20.0.0/24"
    }
    ports = command("port", "list", "--long", "--device-owner", "compute:az1")
    assert [row["ID"] for row in ports] == [ids.named("port", "11")]
    assert command("port", "show", ids.named("port", "11"))["device_owner"] == "compute:az1"


def test_the_command_knows_images(command: Command) -> None:
    assert [row["Name"] for row in command("image", "list", "--long")] == ["debian-12"]
    image = command("image", "show", "debian-12")
    assert (image["properties"]["os_distro"], image["visibility"]) == ("debian", "public")
    assert "protected and cannot be deleted" in command("image", "delete", "debian-12", fails=True)


def test_the_command_finds_none_of_what_there_is_not(command: Command) -> None:
    assert command("security", "group", "list") == []
    assert command("floating", "ip", "list") == []
    assert command("router", "list") == []
    assert command("extension", "list", "--network")
    assert "read-only" in command("network", "create", "new", fails=True)
