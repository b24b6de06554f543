"""Unmodified clients against the compute API: openstacksdk, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import openstack.connection
import pytest
from openstack import exceptions

from tests.fixtures import auth
from tests.fixtures.compute import IMAGE, a_full_server, uuid_of
from tests.fixtures.listings import mounted, served
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.filterwarnings("ignore")

Connection = openstack.connection.Connection


def connected(url: str, token: str) -> Connection:
    """A connection with a token, as after a login."""
    return Connection(
        auth_type="admin_token",
        auth={"endpoint": url, "token": token},
        compute_endpoint_override=f"{url}/v2.1",
        region_name="RegionOne",
    )


@pytest.fixture
def clouds(make: MakeApi) -> Iterator[tuple[Connection, Connection]]:
    """The connections of a member and of an administrator."""
    api = make(
        a_full_server(1, name="web"),
        a_full_server(2, name="db", vm_state="stopped", tags=["blue"]),
    )
    with served(mounted(api.app, "/compute")) as root:
        both = tuple(
            connected(f"{root}/compute", token)
            for token in (auth.MEMBER, auth.token("admin", "demo", "admin", "member", "reader"))
        )
        yield both[0], both[1]
        for connection in both:
            connection.close()


def test_servers(clouds: tuple[Connection, Connection]) -> None:
    cloud, _ = clouds
    assert [server.name for server in cloud.compute.servers()] == ["db", "web"]
    assert [server.name for server in cloud.compute.servers(limit=1)] == ["db", "web"]
    assert [server.name for server in cloud.compute.servers(status="SHUTOFF")] == ["db"]
    server = cloud.compute.find_server("web", ignore_missing=False)
    assert server.status == "ACTIVE"
    assert server.flavor.original_name == "m1.small"
    assert server.addresses["vmbr0"][0]["addr"] == "10.20.0.1"
    made = cloud.compute.create_server(
        name="new", flavor_id="m1.small", image_id=IMAGE, networks="auto", key_name="laptop"
    )
    assert made.admin_password
    assert cloud.compute.get_server(made.id).status == "BUILD"
    cloud.compute.set_server_metadata(server, role="front")
    assert cloud.compute.get_server_metadata(server).metadata == {"role": "front"}
    assert cloud.compute.update_server(server, name="front").name == "front"
    cloud.compute.add_tag_to_server(server, "red")
    assert cloud.compute.get_server(server.id).fetch_tags(cloud.compute).tags == ["red"]
    cloud.compute.stop_server(server)
    cloud.compute.reboot_server(server, "HARD")
    with pytest.raises(exceptions.ConflictException, match="Cannot 'start' instance"):
        cloud.compute.start_server(server)
    cloud.compute.delete_server(server)
    assert cloud.compute.find_server(uuid_of(1)) is None
    assert list(cloud.compute.server_actions(made)) == []


def test_flavors_keypairs_and_limits(clouds: tuple[Connection, Connection]) -> None:
    cloud, admin = clouds
    assert [flavor.name for flavor in cloud.compute.flavors()] == ["m1.small"]
    flavor = admin.compute.create_flavor(name="big", ram=4096, vcpus=2, disk=10)
    admin.compute.create_flavor_extra_specs(flavor, {"a": "b"})
    assert cloud.compute.find_flavor("big", get_extra_specs=True).extra_specs == {"a": "b"}
    admin.compute.delete_flavor(flavor)
    assert [keypair.name for keypair in cloud.compute.keypairs()] == ["laptop"]
    assert cloud.compute.create_keypair(name="made").private_key
    cloud.compute.delete_keypair("made")
    assert cloud.compute.get_limits().absolute.instances == 10
    assert cloud.compute.get_quota_set("demo").cores == 20
    assert [zone.name for zone in cloud.compute.availability_zones()] == ["az1"]
    assert cloud.compute.find_extension("os-aggregates").name == "Aggregates"


def test_operators(clouds: tuple[Connection, Connection]) -> None:
    cloud, admin = clouds
    (service,) = admin.compute.services()
    assert (service.host, service.state, service.status) == ("pve1", "up", "enabled")
    disabled = admin.compute.disable_service(service, disabled_reason="repair")
    assert disabled.status == "disabled"
    (hypervisor,) = admin.compute.hypervisors(details=True)
    assert hypervisor.name == "pve1"
    assert admin.compute.get_hypervisor(hypervisor.id).uptime == "up 1 day, 2:03"
    with pytest.raises(exceptions.ForbiddenException, match="Policy doesn't allow"):
        list(cloud.compute.services())
