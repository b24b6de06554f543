"""The first session of a user with the unmodified `openstack` client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from tests.compat.conftest import Client, Site


@pytest.fixture
def keypair(client: Client, tmp_path: Path) -> Iterator[str]:
    """A key pair made from a public key, as `ssh-keygen` writes it."""
    key = ed25519.Ed25519PrivateKey.generate().public_key()
    text = key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    path = tmp_path / "id.pub"
    path.write_bytes(text + b" me@here\n")
    made = client.ask("keypair", "create", "--public-key", str(path), "k")
    assert made["name"] == "k"
    assert made["fingerprint"]
    yield "k"
    client.do("keypair", "delete", "k")


def test_token(client: Client) -> None:
    token = client.ask("token", "issue")
    assert token["id"]
    assert token["project_id"]


def test_the_program_as_it_is_installed(client: Client) -> None:
    listed = client.program("flavor", "list", "-f", "json")
    assert listed.returncode == 0, listed.stderr
    assert json.loads(listed.stdout) == client.ask("flavor", "list")
    refused = client.program("server", "show", "nobody")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "No Server found for nobody" in refused.stderr


def test_what_there_is(client: Client, site: Site) -> None:
    flavors = {row["Name"]: row for row in client.ask("flavor", "list")}
    assert {"m1.tiny", "m1.small", "m1.medium", "m1.large", "m1.xlarge"} <= set(flavors)
    assert (flavors["m1.small"]["RAM"], flavors["m1.small"]["VCPUs"]) == (2048, 1)
    assert client.names("image", "list") >= site.images
    assert "vmbr0" in client.names("network", "list")
    hypervisors = client.ask("hypervisor", "list")
    assert len(hypervisors) == site.hosts
    assert {row["State"] for row in hypervisors} == {"up"}
    services = client.ask("compute", "service", "list")
    assert {row["Binary"] for row in services} == {
        "micronova-agent",
        "nova-compute",
        "nova-conductor",
        "nova-scheduler",
    }
    assert {row["State"] for row in services} == {"up"}


@pytest.mark.parametrize("user", ["micronova", "micronova-demo", "micronova-reader"])
def test_quotas_and_limits(site: Site, user: str) -> None:
    """The client asks the Network API for quotas whatever its extensions are."""
    client = Client(site, user)
    for option in ((), ("--default",), ("--usage",)):
        limits = {row["Resource"]: row["Limit"] for row in client.ask("quota", "show", *option)}
        assert (limits["instances"], limits["ports"]) == (10, 500)
    absolute = {row["Name"]: row["Value"] for row in client.ask("limits", "show", "--absolute")}
    assert absolute["instances"] == 10


def test_what_the_cloud_is(client: Client) -> None:
    zones = {row["Zone Name"] for row in client.ask("availability", "zone", "list")}
    assert {"internal", "nova"} <= zones
    aliases = {row["Alias"] for row in client.ask("extension", "list", "--network")}
    assert {"quotas", "quota_details", "net-mtu"} <= aliases
    versions = {row["Service Type"] for row in client.ask("versions", "show")}
    services = {row["Type"] for row in client.ask("catalog", "list")}
    assert versions == services - {"volumev3"}
    assert versions == {
        *("identity", "compute", "placement", "image", "network"),
        *("block-storage", "clustering"),
    }


def test_networks_of_a_server(client: Client, site: Site, name: str) -> None:
    create = ("server", "create", "--flavor", "m1.tiny", "--image", smallest(site), "--wait")
    net = client.ask("network", "show", "vmbr0")["id"]
    fixed = client.ask(*create, "--nic", f"net-id={net},v4-fixed-ip=10.20.9.9", name)
    assert fixed["addresses"] == {"vmbr0": ["10.20.9.9"]}
    without = client.ask(*create, "--nic", "none", f"{name}-none")
    assert not without["addresses"]
    client.do(*create, "--network", "vmbr0", "--min", "1", "--max", "2", f"{name}-of")
    names = {name, f"{name}-none", f"{name}-of-1", f"{name}-of-2"}
    assert names <= client.names("server", "list")
    client.do("server", "delete", "--wait", *sorted(names))


def test_a_server_needs_no_network_named(client: Client, site: Site, name: str) -> None:
    create = ("server", "create", "--flavor", "m1.tiny", "--image", smallest(site), "--wait")
    made = client.ask(*create, name)
    assert list(made["addresses"]) == ["vmbr0"]
    client.do("server", "delete", "--wait", name)


def test_life_of_a_server(
    client: Client, site: Site, keypair: str, name: str, tmp_path: Path
) -> None:
    user_data = tmp_path / "f.yaml"
    user_data.write_text("#cloud-config\npackages: [nginx]\n")
    server = client.ask(
        *("server", "create", "--flavor", site.flavor, "--image", site.image),
        *("--network", "vmbr0", "--key-name", keypair, "--user-data", str(user_data)),
        *("--wait", name),
    )
    assert server["status"] == "ACTIVE"
    listed = {row["Name"]: row for row in client.ask("server", "list")}
    assert listed[name]["Status"] == "ACTIVE"
    assert listed[name]["Networks"]["vmbr0"][0].startswith("10.20.")
    assert listed[name]["Image"] == site.image
    assert listed[name]["Flavor"] == site.flavor
    shown = client.ask("server", "show", name)
    assert shown["id"] == server["id"]
    assert shown["key_name"] == keypair
    assert shown["OS-EXT-STS:power_state"] in (1, "Running")

    power(client, name)
    events(client, name)

    client.do("server", "delete", "--wait", name)
    assert name not in client.names("server", "list")
    gone = client.run("server", "show", name)
    assert gone.returncode == 1
    assert f"No Server found for {name}" in gone.stderr


def power(client: Client, name: str) -> None:
    for action, status in (("stop", "SHUTOFF"), ("start", "ACTIVE")):
        client.do("server", action, name)
        wait(client, name, status)
    client.do("server", "reboot", "--wait", name)
    wait(client, name, "ACTIVE")


def wait(client: Client, name: str, status: str) -> None:
    """Ask until the server is at rest in the status; each question takes a second or two."""
    for _ in range(60):
        shown = client.ask("server", "show", name)
        if shown["status"] == status and not shown["OS-EXT-STS:task_state"]:
            return
    raise AssertionError(f"{name} is {shown['status']}, not {status}")


def events(client: Client, name: str) -> None:
    """Every action is there, and the steps of the create."""
    listed = client.ask("server", "event", "list", name)
    actions = [row["Action"] for row in listed]
    assert sorted(actions) == ["create", "reboot", "start", "stop"]
    request = next(row["Request ID"] for row in listed if row["Action"] == "create")
    shown = client.ask("server", "event", "show", name, request)
    assert shown["action"] == "create"
    assert shown["events"]
    assert {event["result"] for event in shown["events"]} == {"Success"}


def test_explain(client: Client, site: Site, name: str) -> None:
    client.do(
        *("server", "create", "--flavor", "m1.tiny", "--image", smallest(site)),
        *("--nic", "auto" if not site.simulated else "net-id=vmbr0", "--wait", name),
    )
    story = client.do("micronova", "explain", name)
    assert "create" in story
    assert "ACTIVE" in story.upper()
    client.do("server", "delete", "--wait", name)


def smallest(site: Site) -> str:
    return "cirros" if site.simulated else site.image


def test_a_reader_may_look_and_no_more(site: Site, name: str) -> None:
    reader = Client(site, "micronova-reader")
    assert "m1.tiny" in reader.names("flavor", "list")
    refused = reader.run(
        *("server", "create", "--flavor", "m1.tiny", "--image", smallest(site)),
        *("--network", "vmbr0", name),
    )
    assert refused.returncode == 1
    assert "403" in refused.stderr


def test_nothing_is_left(client: Client, site: Site) -> None:
    assert client.ask("server", "list", "--all-projects") == []
    quota = {row["Resource"]: row for row in client.ask("quota", "show", "--compute", "--usage")}
    assert quota["instances"]["In Use"] == 0
    if site.simulated:
        for cluster, held in site.cloud.held().items():
            assert not any(held.values()), f"{cluster}: {held}"
