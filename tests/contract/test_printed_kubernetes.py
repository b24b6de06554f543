"""The files of docs/kubernetes.md log in, and the calls of their programs' start are answered.

The order of calls is that of gophercloud 2.12, cloud-provider-openstack and Cluster API Provider
OpenStack, which are written in Go and can't run here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import requests

from tests.compat.conftest import Client, Site
from tests.contract.gophercloud import SECONDS, Gophercloud, Refused
from tests.contract.test_csi_volumes import Controller
from tests.fixtures import kubernetes
from tests.functional.waiting import eventually

_PRINTED_URL = "https://cloud.example/identity/v3"
_VERSION = re.compile(r"v(\d+)(\.\d+)?$")
#: of compute, which the provider asks for at the least: server tags
_NEEDED_MICROVERSION = (2, 38)


class Application(Gophercloud):
    """A program that logs in with `[Global]` of a cloud.conf."""

    def __init__(self, given: Mapping[str, str], auth_url: str) -> None:
        assert given["auth-url"] == _PRINTED_URL
        known = {
            "id": given["application-credential-id"],
            "secret": given["application-credential-secret"],
        }
        # without a scope: the credential is one of a project
        identity = {"methods": ["application_credential"], "application_credential": known}
        answer = requests.post(
            f"{auth_url}/auth/tokens", json={"auth": {"identity": identity}}, timeout=30
        )
        assert answer.status_code == 201, answer.text
        self._token = answer.headers["X-Subject-Token"]
        self._catalog: list[Any] = answer.json()["token"]["catalog"]
        self._region = given["region"]
        self._compute = self.endpoint("compute", version=2)
        self._volume = self.endpoint("block-storage", "volumev3", "volume", version=3)
        self.network_url = f"{self.endpoint('network', version=2)}/v2.0"
        self.image_url = f"{self.endpoint('image', version=2)}/v2"

    def endpoint(self, *types: str, version: int) -> str:
        """Find a service: the first public endpoint of the region that has the version."""
        for entry in self._catalog:
            for one in entry["endpoints"]:
                here = self._region in (one["region"], one["region_id"])
                if entry["type"] not in types or one["interface"] != "public" or not here:
                    continue
                url = one["url"].rstrip("/")
                if version in self._versions(url):
                    return str(url)
        raise AssertionError(f"no endpoint: {types}")

    def _versions(self, url: str) -> set[int]:
        """The version that the URL ends with, or those that its document names."""
        found = _VERSION.search(url)
        if found:
            return {int(found[1])}
        headers = {"X-Auth-Token": self._token, "Accept": "application/json"}
        answer = requests.get(f"{url}/", headers=headers, timeout=30)
        assert answer.status_code in (200, 300)
        matches = [_VERSION.match(one["id"]) for one in answer.json()["versions"]]
        assert all(matches)
        return {int(match[1]) for match in matches if match}

    def network(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the network API."""
        return self._ask(method, f"{self.network_url}/{path}", body, {})

    def image(self, path: str) -> Any:
        """Ask the image API."""
        return self._ask("GET", f"{self.image_url}/{path}", None, {})

    def microversions(self) -> tuple[tuple[int, ...], ...]:
        """The least and the highest one of compute, as the document of its endpoint says."""
        shown = self._ask("GET", f"{self._compute}/", None, {})["version"]
        return tuple(
            tuple(int(part) for part in shown[name].split("."))
            for name in ("min_version", "version")
        )


@pytest.fixture(scope="module")
def credential(site: Site) -> Iterator[Mapping[str, str]]:
    """What the page has a user make."""
    client = Client(site, "micronova-demo")
    made = client.ask("application", "credential", "create", "k8s")
    yield {"id": made["ID"] if "ID" in made else made["id"], "secret": _secret(made)}
    client.do("application", "credential", "delete", "k8s")


def _secret(made: Mapping[str, Any]) -> str:
    return str(made["Secret"] if "Secret" in made else made["secret"])


def test_the_cloud_controller_manager_finds_a_node(
    site: Site, credential: Mapping[str, str], node: Any
) -> None:
    given = kubernetes.options(kubernetes.MANAGER, **credential)
    program = Application(given["global"], site.cloud.auth_url)
    found = program.compute("GET", f"servers/detail?name=^{node.name}$")["servers"]
    assert [one["id"] for one in found] == [node.id]
    assert program.compute("GET", f"servers/{node.id}")["server"]["status"] == "ACTIVE"
    flavor = program.compute("GET", f"flavors/{found[0]['flavor']['id']}")["flavor"]
    assert flavor["name"] == "m1.tiny"
    assert found[0]["OS-EXT-AZ:availability_zone"] == "nova"
    ports = program.network("GET", f"ports?device_id={node.id}")["ports"]
    addresses = {ip["ip_address"] for port in ports for ip in port["fixed_ips"]}
    assert addresses == {one["addr"] for one in found[0]["addresses"]["vmbr0"]}
    # No routers: with --configure-cloud-routes=false nothing asks for more than this.
    extensions = {one["alias"] for one in program.network("GET", "extensions")["extensions"]}
    assert not extensions & {"extraroute", "extraroute-atomic"}


@pytest.mark.usefixtures("shared_storage")
def test_the_driver_makes_a_volume_of_the_printed_class(
    site: Site, credential: Mapping[str, str], node: Any
) -> None:
    given = kubernetes.options(kubernetes.DRIVER, **credential)
    program = Application(given["global"], site.cloud.auth_url)
    assert given["blockstorage"]["node-volume-attach-limit"] == "24"
    [storage] = kubernetes.objects(kubernetes.CLASS).values()
    controller = Controller(program)
    volume = controller.create_volume(
        "pvc-printed", 1, zone="nova", volume_type=storage["parameters"]["type"]
    )["id"]
    controller.publish(node.id, volume)
    controller.expand(volume, 2)
    controller.unpublish(node.id, volume)
    program.wait(volume, ("detaching",), ("available",))
    controller.delete_volume(volume)


def test_the_cluster_provider_prepares_the_printed_cluster(
    site: Site, credential: Mapping[str, str]
) -> None:
    given = kubernetes.options(kubernetes.MANAGER, **credential)
    program = Application(given["global"], site.cloud.auth_url)
    found = kubernetes.objects(kubernetes.CLUSTER)
    cluster, machine = (found[kind]["spec"] for kind in kubernetes.SPECS)
    least, highest = program.microversions()
    assert least <= _NEEDED_MICROVERSION <= highest
    name = cluster["network"]["filter"]["name"]
    [network] = program.network("GET", f"networks?name={name}")["networks"]
    [subnet] = program.network("GET", f"subnets?network_id={network['id']}")["subnets"]
    zones = program.compute("GET", "os-availability-zone")["availabilityZoneInfo"]
    assert [one["zoneName"] for one in zones if one["zoneState"]["available"]] == ["nova"]
    extensions = {one["alias"] for one in program.network("GET", "extensions")["extensions"]}
    assert "standard-attr-tag" in extensions
    group = managed_group(program)
    template = machine["template"]["spec"]
    image = template["image"]["filter"]["name"]
    assert program.image(f"images?name={image}")["images"] == []
    [printed] = template["ports"]
    assert printed["network"]["filter"]["name"] == name
    body = {
        "name": "k8s-control-plane-0",
        "network_id": network["id"],
        "fixed_ips": [{"subnet_id": subnet["id"]}],
        "security_groups": [group],
    }
    port = program.network("POST", "ports", {"port": body})["port"]
    endpoint = cluster["controlPlaneEndpoint"]["host"]
    assert port["fixed_ips"][0]["ip_address"] != endpoint
    # the network isn't the project's, as the page says
    pairs = {"allowed_address_pairs": [{"ip_address": endpoint}]}
    with pytest.raises(Refused, match="403"):
        program.network("POST", "ports", {"port": body | pairs})
    admin = Client(site, "micronova-admin")
    admin.do("port", "set", "--allowed-address", f"ip-address={endpoint}", port["id"])
    shown = program.network("GET", f"ports/{port['id']}")["port"]
    assert [one["ip_address"] for one in shown["allowed_address_pairs"]] == [endpoint]
    program.network("DELETE", f"ports/{port['id']}")
    program.network("DELETE", f"security-groups/{group}")
    eventually(
        lambda: program.network("GET", f"security-groups?id={group}")["security_groups"] == [],
        SECONDS,
    )


def managed_group(program: Application) -> str:
    """What `managedSecurityGroups` makes for a part of the cluster."""
    name = "k8s-cluster-default-k8s-secgroup-controlplane"
    assert program.network("GET", f"security-groups?name={name}")["security_groups"] == []
    body = {"name": name, "description": "Cluster API managed group"}
    made = program.network("POST", "security-groups", {"security_group": body})["security_group"]
    rule = {
        "security_group_id": made["id"],
        "direction": "ingress",
        "ethertype": "IPv4",
        "remote_group_id": made["id"],
        "description": "In-cluster Ingress",
    }
    program.network("POST", "security-group-rules", {"security_group_rule": rule})
    return str(made["id"])


def test_a_wrong_secret_is_refused(site: Site, credential: Mapping[str, str]) -> None:
    given = kubernetes.options(kubernetes.DRIVER, id=credential["id"], secret="wrong")
    with pytest.raises(AssertionError, match="401"):
        Application(given["global"], site.cloud.auth_url)
