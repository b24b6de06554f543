"""The same session through openstacksdk, as programs, Ansible and Terraform's kin use it."""

from __future__ import annotations

import base64
from typing import Any

import openstack.exceptions
import pytest

from tests.compat.conftest import Site

WAIT_SECONDS = 120


@pytest.fixture
def member(site: Site) -> Any:
    """A connection of a project's member."""
    return site.cloud.connection("micronova-demo")


def create(cloud: Any, site: Site, name: str, **more: Any) -> Any:
    compute = cloud.compute
    server = compute.create_server(
        name=name,
        flavor_id=compute.find_flavor("m1.tiny", ignore_missing=False).id,
        image_id=cloud.image.find_image(smallest(site), ignore_missing=False).id,
        networks=[{"uuid": cloud.network.find_network("vmbr0", ignore_missing=False).id}],
        **more,
    )
    return compute.wait_for_server(server, wait=WAIT_SECONDS, interval=0.2)


@pytest.mark.parametrize(
    ("version", "asked"), [("2.1", {}), ("2.36", {}), ("2.37", {"networks": "auto"})]
)
def test_the_one_network_is_taken(
    member: Any, site: Site, name: str, version: str, asked: dict[str, str]
) -> None:
    compute = member.compute
    server = {
        "name": name,
        "flavorRef": compute.find_flavor("m1.tiny", ignore_missing=False).id,
        "imageRef": member.image.find_image(smallest(site), ignore_missing=False).id,
    }
    answer = compute.post("/servers", json={"server": server | asked}, microversion=version)
    made = compute.get_server(answer.json()["server"]["id"])
    made = compute.wait_for_server(made, wait=WAIT_SECONDS, interval=0.2)
    assert list(made.addresses) == ["vmbr0"]
    compute.delete_server(made)
    compute.wait_for_delete(made, wait=WAIT_SECONDS, interval=0.2)


def smallest(site: Site) -> str:
    return "cirros" if site.simulated else site.image


def test_life_of_a_server(member: Any, site: Site, name: str) -> None:
    compute = member.compute
    keypair = compute.create_keypair(name=f"key-{name}")
    assert keypair.private_key
    data = base64.b64encode(b"#!/bin/sh\n").decode()
    server = create(member, site, name, key_name=keypair.name, user_data=data)
    assert server.status == "ACTIVE"
    assert [one.name for one in compute.servers(name=name)] == [name]
    for act, status in ((compute.stop_server, "SHUTOFF"), (compute.start_server, "ACTIVE")):
        act(server)
        compute.wait_for_server(server, status=status, wait=WAIT_SECONDS, interval=0.2)
    compute.reboot_server(server, "HARD")
    compute.wait_for_server(server, status="ACTIVE", wait=WAIT_SECONDS, interval=0.2)
    compute.set_server_metadata(server, tier="front")
    assert compute.get_server_metadata(server).metadata == {"tier": "front"}
    actions = {one.action for one in compute.server_actions(server)}
    assert {"create", "stop", "start", "reboot"} <= actions
    compute.delete_server(server)
    compute.wait_for_delete(server, wait=WAIT_SECONDS, interval=0.2)
    compute.delete_keypair(keypair)


def test_the_cloud_layer_creates_and_deletes(member: Any, site: Site, name: str) -> None:
    server = member.create_server(
        name,
        image=smallest(site),
        flavor="m1.tiny",
        network="vmbr0",
        wait=True,
        auto_ip=False,
        timeout=WAIT_SECONDS,
    )
    assert server.status == "ACTIVE"
    assert server.private_v4.startswith("10.20.")
    assert member.delete_server(name, wait=True, timeout=WAIT_SECONDS)


def test_another_projects_server_is_not_there(member: Any, site: Site, name: str) -> None:
    server = create(member, site, name)
    try:
        other = site.cloud.connection("micronova-admin")
        assert other.compute.get_server(server.id).id == server.id  # an administrator's view
        missing = "00000000-0000-4000-8000-000000000000"
        with pytest.raises(openstack.exceptions.NotFoundException):
            member.compute.get_server(missing)
        reader = site.cloud.connection("micronova-reader")
        assert reader.compute.get_server(server.id).id == server.id
        with pytest.raises(openstack.exceptions.ForbiddenException):
            reader.compute.delete_server(server, ignore_missing=False)
    finally:
        member.compute.delete_server(server)
        member.compute.wait_for_delete(server, wait=WAIT_SECONDS, interval=0.2)


def test_a_quota_is_strict(member: Any, site: Site, name: str) -> None:
    limits = member.compute.get_limits().absolute
    with pytest.raises(openstack.exceptions.ForbiddenException, match="Quota exceeded"):
        create(member, site, name, min_count=limits.instances + 1, max_count=limits.instances + 1)
    assert list(member.compute.servers(name=name)) == []
