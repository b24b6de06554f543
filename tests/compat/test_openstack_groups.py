"""Host aggregates, zones and server groups with the unmodified `openstack` client."""

from __future__ import annotations

import itertools
from typing import Any

from tests.compat.conftest import Client, Site

_numbers = itertools.count(1)


def hosts(admin: Client) -> list[str]:
    return sorted(row["Hypervisor Hostname"] for row in admin.ask("hypervisor", "list"))


def zone_of(admin: Client, host: str) -> str:
    listed = admin.ask("compute", "service", "list", "--service", "nova-compute")
    [zone] = [row["Zone"] for row in listed if row["Host"] == host]
    return str(zone)


def test_an_aggregate_makes_a_zone(admin: Client, client: Client, site: Site, name: str) -> None:
    aggregate, zone = f"fast-{next(_numbers)}", f"zone-{next(_numbers)}"
    host = hosts(admin)[-1]
    before = zone_of(admin, host)
    made = admin.ask("aggregate", "create", "--zone", zone, "--property", "ssd=true", aggregate)
    assert (made["availability_zone"], made["properties"]["ssd"]) == (zone, "true")
    try:
        assert admin.ask("aggregate", "add", "host", aggregate, host)["hosts"] == [host]
        shown = admin.ask("aggregate", "show", aggregate)
        assert (shown["hosts"], shown["properties"]) == ([host], {"ssd": "true"})
        assert aggregate in {row["Name"] for row in admin.ask("aggregate", "list", "--long")}
        assert aggregate in admin.ask("hypervisor", "show", host)["aggregates"]
        assert zone_of(admin, host) == zone
        admin.do("aggregate", "cache", "image", aggregate, site.image)
        zones = admin.ask("availability", "zone", "list", "--compute")
        assert zone in {row["Zone Name"] for row in zones}
        server = client.ask(
            *("server", "create", "--flavor", site.flavor, "--image", site.image),
            *("--network", "vmbr0", "--availability-zone", zone, "--wait", name),
        )
        assert server["OS-EXT-AZ:availability_zone"] == zone
        refused = admin.run("aggregate", "remove", "host", aggregate, host)
        assert refused.returncode == 1
        assert f"would change from '{zone}' to '{before}'" in refused.stderr
    finally:
        client.run("server", "delete", "--wait", name)
        admin.do("aggregate", "unset", "--property", "ssd", aggregate)
        admin.do("aggregate", "set", "--name", f"{aggregate}-x", aggregate)
        admin.run("aggregate", "remove", "host", f"{aggregate}-x", host)
        admin.do("aggregate", "delete", f"{aggregate}-x")
    assert zone_of(admin, host) == before


def test_server_groups(admin: Client, client: Client, site: Site, name: str) -> None:
    group = f"apart-{next(_numbers)}"
    made = client.ask("server", "group", "create", "--policy", "anti-affinity", group)
    names = [f"{name}-{number}" for number in range(site.hosts)]
    create = ("server", "create", "--flavor", site.flavor, "--image", site.image)
    hint = ("--network", "vmbr0", "--hint", f"group={made['id']}", "--wait")
    try:
        for one in names:
            client.do(*create, *hint, one)
        shown = client.ask("server", "group", "show", group)
        assert len(shown["members"]) == site.hosts
        places = [place_of(admin, server) for server in shown["members"]]
        assert sorted(places) == hosts(admin)
        refused = client.run(*create, *hint, f"{name}-x")
        assert refused.returncode == 1
        fault = client.ask("server", "show", f"{name}-x")["fault"]
        assert "anti-affinity group" in str(fault)
        listed = client.ask("server", "group", "list", "--long")
        assert group in {row["Name"] for row in listed}
    finally:
        client.run("server", "delete", "--wait", *names, f"{name}-x")
        client.do("server", "group", "delete", group)


def place_of(admin: Client, server: str) -> Any:
    return admin.ask("server", "show", server)["OS-EXT-SRV-ATTR:host"]


def test_a_project_that_is_not_there_has_no_quota(admin: Client) -> None:
    refused = admin.run("quota", "set", "--cores", "3", "0123456789abcdef0123456789abcdef")
    assert refused.returncode == 1
