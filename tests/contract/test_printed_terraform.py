"""docs/tutorials/terraform.md: the provider's requests of its file, applied and destroyed.

The provider is written in Go and can't be had here. The requests are those of its resources
(version 3.0) and of gophercloud 2, in the order in which each is created, read and deleted.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.compat.conftest import Site
from tests.contract.gophercloud import SECONDS, Gone, Gophercloud
from tests.contract.test_terraform_volumes import attach, create, delete, detach
from tests.fixtures import terraform
from tests.fixtures.terraform import Resource
from tests.functional.waiting import eventually
from tests.pages import block

TERRAFORM = shutil.which("terraform") or shutil.which("tofu")
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ6Uo6Xyb0wZVxl3hQ5p1tGqWcm1tLwGxDdVnqkxaX3B"


class Provider(Gophercloud):
    """What the resources ask of all APIs."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        connection = site.cloud.connection("micronova-demo")
        self._network = connection.network.get_endpoint().rstrip("/").removesuffix("/v2.0")
        self._image = connection.image.get_endpoint().rstrip("/").removesuffix("/v2")

    def network(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the network API."""
        return self._ask(method, f"{self._network}/v2.0/{path}", body, {})

    def one(self, url: str, member: str) -> str:
        """Return the ID of the one thing that a list has."""
        [found] = self._ask("GET", url, None, {})[member]
        return str(found["id"])

    def keypair(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """`openstack_compute_keypair_v2`."""
        assert given["public_key"] == 'file("~/.ssh/micronova.pub")'
        body = {"keypair": {**given, "public_key": PUBLIC_KEY}}
        self.compute("POST", "os-keypairs", body)
        shown = self.compute("GET", f"os-keypairs/{given['name']}")["keypair"]
        return {"id": shown["name"], "name": shown["name"]}

    def group(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """`openstack_networking_secgroup_v2`."""
        made = self.network("POST", "security-groups", {"security_group": given})
        made = made["security_group"]
        shown = self.network("GET", f"security-groups/{made['id']}")["security_group"]
        assert isinstance(shown["stateful"], bool)
        return {"id": shown["id"], "name": shown["name"]}

    def rule(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """`openstack_networking_secgroup_rule_v2`."""
        body = {"security_group_rule": given}
        made = self.network("POST", "security-group-rules", body)["security_group_rule"]
        shown = self.network("GET", f"security-group-rules/{made['id']}")["security_group_rule"]
        assert {name: shown[name] for name in given} == given
        return {"id": shown["id"]}

    def instance(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """`openstack_compute_instance_v2`: its names are looked up first."""
        image = self.one(f"{self._image}/v2/images?name={given['image_name']}", "images")
        flavors = self.compute("GET", "flavors/detail?is_public=None")["flavors"]
        [flavor] = [one["id"] for one in flavors if one["name"] == given["flavor_name"]]
        name = given["network"]["name"]
        network = self.one(f"{self._network}/v2.0/networks?name={name}", "networks")
        asked = {
            "name": given["name"],
            "imageRef": image,
            "flavorRef": flavor,
            "key_name": given["key_pair"],
            "security_groups": [{"name": one} for one in given["security_groups"]],
            "networks": [{"uuid": network}],
            "metadata": given["metadata"],
        }
        number = self.compute("POST", "servers", {"server": asked})["server"]["id"]
        shown: dict[str, Any] = {}

        def active() -> bool:
            shown.update(self.compute("GET", f"servers/{number}")["server"])
            assert shown["status"] in ("BUILD", "ACTIVE"), shown
            return bool(shown["status"] == "ACTIVE")

        eventually(active, SECONDS, 0.05)
        assert (shown["metadata"], shown["key_name"]) == (given["metadata"], given["key_pair"])
        assert {one["name"] for one in shown["security_groups"]} == set(given["security_groups"])
        assert list(shown["addresses"]) in ([], [name])
        return {"id": number}

    def blank(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """`openstack_blockstorage_volume_v3`."""
        asked = dict(given)
        near = asked.pop("scheduler_hints")["local_to_instance"]
        return {"id": create(self, near, **asked)["id"]}

    def attached(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """`openstack_compute_volume_attach_v2`."""
        return {
            "id": (given["instance_id"], attach(self, given["instance_id"], given["volume_id"]))
        }

    def gone(self, number: str) -> None:
        """Delete an instance, and ask until it is not found."""
        self.compute("DELETE", f"servers/{number}")
        eventually(lambda: not self.has("compute", f"servers/{number}"), SECONDS, 0.05)


CREATES: Mapping[str, Callable[[Provider, Mapping[str, Any]], Mapping[str, Any]]] = {
    "openstack_compute_keypair_v2": Provider.keypair,
    "openstack_networking_secgroup_v2": Provider.group,
    "openstack_networking_secgroup_rule_v2": Provider.rule,
    "openstack_compute_instance_v2": Provider.instance,
    "openstack_blockstorage_volume_v3": Provider.blank,
    "openstack_compute_volume_attach_v2": Provider.attached,
}
DELETES: Mapping[str, Callable[[Provider, Any], Any]] = {
    "openstack_compute_keypair_v2": lambda p, n: p.compute("DELETE", f"os-keypairs/{n}"),
    "openstack_networking_secgroup_v2": lambda p, n: p.network("DELETE", f"security-groups/{n}"),
    "openstack_networking_secgroup_rule_v2": lambda p, n: p.network(
        "DELETE", f"security-group-rules/{n}"
    ),
    "openstack_compute_instance_v2": Provider.gone,
    "openstack_blockstorage_volume_v3": delete,
    "openstack_compute_volume_attach_v2": lambda p, both: detach(p, *both),
}


def test_it_is_applied_and_destroyed(site: Site) -> None:
    provider, known, made = Provider(site), dict[str, Any](), list[tuple[Resource, Any]]()
    for one in terraform.resources():
        values = CREATES[one.kind](provider, one.with_values(known))
        known |= {f"{one.address}.{name}": value for name, value in values.items()}
        made.append((one, values["id"]))
    server = known["openstack_compute_instance_v2.shop.id"]
    [volume] = provider.compute("GET", f"servers/{server}/os-volume_attachments")[
        "volumeAttachments"
    ]
    assert volume["volumeId"] == known["openstack_blockstorage_volume_v3.shop.id"]
    for one, number in reversed(made):
        DELETES[one.kind](provider, number)
    for path in (f"servers/{server}", "os-keypairs/shop"):
        with pytest.raises(Gone):
            provider.compute("GET", path)


def test_arguments_are_those_of_the_provider() -> None:
    found = terraform.resources()
    assert {one.kind for one in found} == set(CREATES)
    assert [terraform.unknown(one) for one in found] == [set()] * len(found)
    wrong = Resource("openstack_compute_instance_v2", "x", {"flavour": "", "network": {"nam": ""}})
    assert terraform.unknown(wrong) == {"flavour", "network.nam"}


@pytest.mark.skipif(TERRAFORM is None, reason="neither Terraform nor OpenTofu is installed")
@pytest.mark.parametrize("printed", sorted(terraform.RUN))
def test_it_is_formatted_as_terraform_does(tmp_path: Path, printed: terraform.Printed) -> None:
    assert TERRAFORM is not None
    (tmp_path / "main.tf").write_text(block(*printed))
    done = subprocess.run(
        [TERRAFORM, "fmt", "-check", "-diff", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
