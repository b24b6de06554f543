"""os-interface and the actions on fixed addresses: versions, refusals in Nova's words, ports."""

from __future__ import annotations

from typing import Any

import pytest

from common import ids
from common.messages.reports import Category, Failure
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import NETWORK, ComputeApi, a_full_server, uuid_of
from tests.fixtures.listings import NOW, Row
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

PATH = f"/servers/{uuid_of(1)}/os-interface"
SUBNET = ids.named("subnet", "vmbr0/10.20.0.0/24")
PORT = ids.named("port", "1")


def a_network(name: str = "vmbr0") -> Row:
    values = {"id": ids.named("network", name), "name": name, "bridge": name}
    return schema.networks, {**values, "created_at": NOW, "updated_at": NOW}


def a_subnet(last: str = "10.20.0.9") -> Row:
    return schema.subnets, {
        "id": SUBNET,
        "network_id": NETWORK,
        "name": "s",
        "cidr": "10.20.0.0/24",
        "gateway_ip": "10.20.0.254",
        "pool_start": "10.20.0.2",
        "pool_end": last,
        "next_ip": "10.20.0.2",
        "dns_nameservers": [],
        "created_at": NOW,
        "updated_at": NOW,
    }


def a_port(number: int = 1, ip: str = "10.20.0.2", **changes: Any) -> Row:
    values: dict[str, Any] = {
        "id": ids.named("port", str(number)),
        "network_id": NETWORK,
        "subnet_id": SUBNET,
        "server_uuid": uuid_of(1),
        "project_id": "demo",
        "position": 0,
        "mac": f"fa:16:3e:00:00:{number:02x}",
        "ip": ip,
        "created_at": NOW,
    }
    return schema.ports, values | changes


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    return make(
        a_full_server(1, power_state=1),
        a_full_server(2, vm_state="suspended"),
        a_full_server(3, locked_by="owner"),
        a_full_server(4, task_state="rebooting"),
        a_network(),
        a_subnet(),
        a_port(tag="front"),
    )


def attach(api: ComputeApi, version: str = "2.70", number: int = 1, **asked: Any) -> Any:
    body = {"interfaceAttachment": asked}
    return api.request("POST", f"/servers/{uuid_of(number)}/os-interface", body, version=version)


def refused(answer: Any) -> tuple[int, str]:
    [fault] = answer.json.values()
    return answer.status_code, fault["message"]


def ports(api: ComputeApi) -> int:
    return len(api.get(PATH).json["interfaceAttachments"])


def test_what_is_shown(api: ComputeApi) -> None:
    shown = {
        "net_id": NETWORK,
        "port_id": PORT,
        "mac_addr": "fa:16:3e:00:00:01",
        "port_state": "ACTIVE",
        "fixed_ips": [{"subnet_id": SUBNET, "ip_address": "10.20.0.2"}],
    }
    assert api.get(PATH, version="2.69").json == {"interfaceAttachments": [shown]}
    tagged = shown | {"tag": "front"}
    assert api.get(PATH, version="2.70").json == {"interfaceAttachments": [tagged]}
    one = api.get(f"{PATH}/{PORT}", version="2.70")
    assert one.json == {"interfaceAttachment": tagged}
    assert refused(api.get(f"{PATH}/nothing")) == (
        404,
        f"Instance {uuid_of(1)} does not have a port with id nothing",
    )
    assert api.get(f"{PATH}?x=1", version="2.102").status_code == 400
    assert api.get(PATH, token=auth.READER).status_code == 200
    assert api.get(PATH, token=auth.OTHER).status_code == 404


def test_an_interface_is_attached(api: ComputeApi) -> None:
    answer = attach(api, net_id=NETWORK, tag="back")
    assert answer.status_code == 200
    made = answer.json["interfaceAttachment"]
    assert (made["net_id"], made["tag"]) == (NETWORK, "back")
    assert made["fixed_ips"] == [{"subnet_id": SUBNET, "ip_address": "10.20.0.3"}]
    assert made["mac_addr"].startswith("fa:16:3e:")
    # The only network there is.
    assert attach(api).status_code == 200
    chosen = attach(api, net_id=NETWORK, fixed_ips=[{"ip_address": "10.20.0.8"}])
    assert chosen.json["interfaceAttachment"]["fixed_ips"][0]["ip_address"] == "10.20.0.8"
    assert ports(api) == 4
    actions = api.get(f"/servers/{uuid_of(1)}/os-instance-actions").json["instanceActions"]
    assert {one["action"] for one in actions} == {"attach_interface"}


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        ({"net_id": NETWORK, "port_id": PORT}, 400, "Must not input both network_id and port_id"),
        (
            {"fixed_ips": [{"ip_address": "10.20.0.3"}]},
            400,
            "Must input network_id when request IP address",
        ),
        ({"net_id": PORT}, 404, f"Network {PORT} could not be found."),
        ({"port_id": NETWORK}, 404, f"Port id {NETWORK} could not be found."),
        ({"port_id": PORT}, 409, f"Port {PORT} is still in use."),
        (
            {"net_id": NETWORK, "fixed_ips": [{"ip_address": "10.20.0.2"}]},
            409,
            f"Fixed IP address 10.20.0.2 is already in use on instance {uuid_of(1)}.",
        ),
        (
            {"net_id": NETWORK, "fixed_ips": [{"ip_address": "192.0.2.1"}]},
            400,
            "IP address 192.0.2.1 is not a valid IP for any of the subnets",
        ),
        ({"net_id": NETWORK, "fixed_ips": [{"ip_address": "10.20.0.99"}]}, 403, "Policy"),
        ({"net_id": "x"}, 400, "Invalid input for field/attribute net_id"),
        ({"net_id": NETWORK, "fixed_ips": []}, 400, "Invalid input for field/attribute fixed_ips"),
    ],
)
def test_refusals(api: ComputeApi, asked: dict[str, Any], status: int, words: str) -> None:
    answer = attach(api, **asked)
    assert answer.status_code == status
    assert words in refused(answer)[1]
    assert ports(api) == 1


def test_in_which_states(api: ComputeApi) -> None:
    assert refused(attach(api, number=2)) == (
        409,
        f"Cannot 'attach_interface' instance {uuid_of(2)} while it is in vm_state suspended",
    )
    assert refused(attach(api, number=3)) == (409, f"Instance {uuid_of(3)} is locked")
    assert "task_state rebooting" in refused(attach(api, number=4))[1]
    assert attach(api, "2.48", tag="x").status_code == 400
    denied = api.request("POST", PATH, {"interfaceAttachment": {}}, token=auth.READER)
    assert denied.status_code == 403
    path = f"/servers/{uuid_of(2)}/os-interface/{PORT}"
    assert "Cannot 'detach_interface'" in refused(api.request("DELETE", path))[1]


def test_no_address_is_left_and_several_networks(make: MakeApi) -> None:
    api = make(a_full_server(1), a_network(), a_subnet("10.20.0.2"), a_port())
    assert refused(attach(api, net_id=NETWORK)) == (
        400,
        f"No fixed IP addresses available for network: {NETWORK}",
    )
    api.add(a_network("vmbr1"))
    assert refused(attach(api))[0] == 400
    assert "More than one possible network found." in refused(attach(api))[1]


def test_no_network(make: MakeApi) -> None:
    api = make(a_full_server(1))
    assert refused(attach(api)) == (
        400,
        "No specific network was requested and none are available for project 'demo'.",
    )


@pytest.mark.parametrize(
    ("category", "status"), [(Category.CONFIGURATION, 400), (Category.NODE_UNHEALTHY, 503)]
)
def test_a_vm_that_does_not_take_it(api: ComputeApi, category: Category, status: int) -> None:
    api.conductor.runner.failure = Failure(category, "It does not work.")
    answer = attach(api, net_id=NETWORK)
    assert answer.status_code == status
    assert f"Failed to attach network adapter device to {uuid_of(1)}" in refused(answer)[1]


def test_an_interface_is_detached(api: ComputeApi) -> None:
    assert refused(api.request("DELETE", f"{PATH}/{NETWORK}")) == (
        404,
        f"Port id {NETWORK} could not be found.",
    )
    answer = api.request("DELETE", f"{PATH}/{PORT}")
    assert (answer.status_code, answer.text) == (202, "")


def test_fixed_addresses_up_to_2_43(api: ComputeApi) -> None:
    def act(body: dict[str, Any], version: str = "2.43") -> Any:
        return api.request("POST", f"/servers/{uuid_of(1)}/action", body, version=version)

    add, remove = (
        {"addFixedIp": {"networkId": NETWORK}},
        {"removeFixedIp": {"address": "10.0.0.1"}},
    )
    assert act(add).status_code == 202
    assert ports(api) == 2
    assert refused(act(remove)) == (
        400,
        f"Instance {uuid_of(1)} does not have fixed IP '10.0.0.1'.",
    )
    assert act({"removeFixedIp": {"address": "10.20.0.2"}}).status_code == 202
    assert act({"removeFixedIp": {"address": "x"}}).status_code == 400
    assert act(add, "2.44").status_code == 404
    assert act(remove, "2.44").status_code == 404
