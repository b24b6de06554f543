"""An unmodified Horizon: somebody logs in and uses servers, images, networks and volumes.

`tox -e horizon` installs it and runs this; it is too large for every run. What the APIs refused
is read from their metrics: only known refusals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.compat.horizon.horizon import PYTHON, Person, refusals, running_horizon
from tests.functional.cloud import EmbeddedCloud, embedded_cloud, eventually

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not PYTHON.exists(), reason="Horizon is not installed"),
]

WAIT_SECONDS = 90
PAGES = {
    "micronova-demo": (
        *("/project/", "/project/api_access/", "/project/instances/", "/project/images"),
        *("/project/key_pairs", "/project/server_groups/", "/project/volumes/"),
        *("/project/snapshots/", "/project/volume_groups/", "/project/vg_snapshots/"),
        *("/project/backups/", "/project/network_topology/", "/project/networks/"),
        *("/project/security_groups/", "/identity/", "/identity/application_credentials/"),
        "/settings/",
    ),
    "micronova-admin": (
        *("/admin/", "/admin/hypervisors/", "/admin/aggregates/", "/admin/instances/"),
        *("/admin/volumes/", "/admin/snapshots/", "/admin/volume_types/", "/admin/backups/"),
        *("/admin/volume_groups/", "/admin/vg_snapshots/", "/admin/group_types/"),
        *("/admin/images", "/admin/flavors/", "/admin/networks/", "/admin/defaults/"),
        *("/admin/metadata_defs", "/admin/info/", "/admin/rbac_policies/"),
        *("/identity/", "/identity/users/", "/identity/groups/", "/identity/roles/"),
    ),
}
ASKED = (
    *("nova/servers/", "nova/flavors/?get_extras=true", "nova/limits/?reserved=true"),
    *("nova/availzones/", "nova/keypairs/", "nova/servergroups/", "nova/quota-sets/defaults/"),
    *("glance/images/", "glance/version/", "glance/metadefs/resourcetypes/"),
    "glance/metadefs/namespaces/?resource_type=OS::Nova::Flavor",
    *("neutron/networks/", "neutron/ports/", "neutron/extensions/", "neutron/trunks/"),
    *("network/securitygroups/", "network/floatingips/", "network/floatingippools/"),
    *("cinder/volumes/", "cinder/volumesnapshots/", "cinder/volumetypes/", "cinder/availzones/"),
    *("cinder/volumetypes/default/", "cinder/tenantabsolutelimits/", "cinder/extensions/"),
)
REFUSED: set[tuple[str, str]] = set()


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCloud]:
    with embedded_cloud(tmp_path_factory.mktemp("horizon"), speed=50) as running:
        yield running


@pytest.fixture(scope="module")
def url(cloud: EmbeddedCloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_horizon(cloud, tmp_path_factory.mktemp("site")) as running:
        yield running


@pytest.fixture(scope="module")
def member(url: str, cloud: EmbeddedCloud) -> Person:
    return Person(url, cloud, "micronova-demo")


@pytest.fixture(autouse=True)
def nothing_is_refused(cloud: EmbeddedCloud) -> Iterator[None]:
    before = refusals(cloud)
    yield
    found = {labels for labels, value in refusals(cloud).items() if value > before.get(labels, 0)}
    unknown = [
        labels
        for labels in found
        if not any(f'action="{a}"' in labels and f'status="{s}"' in labels for a, s in REFUSED)
    ]
    assert unknown == []


@pytest.mark.parametrize("who", PAGES)
def test_every_page_opens(url: str, cloud: EmbeddedCloud, who: str) -> None:
    person = Person(url, cloud, who)
    for path in PAGES[who]:
        person.open(path)
    for path in ASKED:
        person.ask(path)


def _launch(member: Person, name: str) -> str:
    """Launch a server as the page's wizard does; return its id once it runs."""
    flavor = member.named("nova/flavors/?is_public=true", "m1.nano")
    [network, *_] = member.items("neutron/networks/")
    made = member.ask(
        "nova/servers/",
        "POST",
        name=name,
        source_id=member.named("glance/images/", "cirros")["id"],
        flavor_id=flavor["id"],
        nics=[{"net-id": network["id"], "v4-fixed-ip": ""}],
        key_name=None,
        user_data="",
        config_drive=False,
        disk_config="AUTO",
        security_groups=["default"],
        availability_zone="",
        instance_count=1,
        block_device_mapping_v2=None,
    )
    _await(member, made["id"], "ACTIVE")
    return str(made["id"])


def _await(member: Person, server: str, *statuses: str) -> None:
    def there() -> bool:
        shown: Any = member.ask(f"nova/servers/{server}")
        return shown["status"] in statuses

    eventually(there, WAIT_SECONDS, 0.5)


def test_the_life_of_a_server(member: Person, cloud: EmbeddedCloud) -> None:
    server = _launch(member, "web")
    page = f"/project/instances/{server}"
    assert "cirros" in member.open("/project/instances/")
    assert "m1.nano" in member.open(f"{page}/")
    tabs = ("interfaces", "log", "audit")
    for tab in tabs:
        member.open(f"{page}/?tab=instance_details__{tab}")
    console = re.search(
        r'<iframe id="console_embed" src="([^"]+)"',
        member.open(f"{page}/?tab=instance_details__console"),
    )
    assert console is not None
    screen = requests.get(console[1].replace("&amp;", "&"), timeout=30)
    assert screen.ok
    assert "frame-ancestors" not in screen.headers["Content-Security-Policy"]
    member.send(f"{page}/update", name="renamed")
    member.ask(f"nova/servers/{server}/metadata", "PATCH", updated={"a": "b"}, removed=[])
    for action, status in (
        ("pause", "PAUSED"),
        ("pause", "ACTIVE"),
        ("stop", "SHUTOFF"),
        ("start", "ACTIVE"),
        ("suspend", "SUSPENDED"),
        ("suspend", "ACTIVE"),
        ("shelve", "SHELVED_OFFLOADED"),
        ("shelve", "ACTIVE"),
        ("soft_reboot", "ACTIVE"),
    ):
        member.act("instances", action, server)
        _await(member, server, status)
    image = member.named("glance/images/", "cirros")["id"]
    member.send(f"{page}/rescue", image=image)
    _await(member, server, "RESCUE")
    member.act("instances", "unrescue", server)
    _await(member, server, "ACTIVE")
    member.send(f"{page}/rebuild", image=image)
    _await(member, server, "REBUILD", "ACTIVE")
    _await(member, server, "ACTIVE")
    larger = member.named("nova/flavors/?is_public=true", "m1.tiny")
    member.send(f"{page}/resize", flavor=larger["id"])
    _await(member, server, "VERIFY_RESIZE")
    member.act("instances", "confirm", server)
    _await(member, server, "ACTIVE")
    member.act("instances", "delete", server)
    eventually(lambda: "renamed" not in member.open("/project/instances/"), WAIT_SECONDS, 0.5)


def test_volumes(member: Person) -> None:
    server = _launch(member, "holder")
    empty = {"volume_source_type": "no_source_type", "type": "", "availability_zone": ""}
    member.send("/project/volumes/create/", name="data", size="1", **empty)
    volume = str(member.named("cinder/volumes/", "data")["id"])

    def has(status: str) -> None:
        eventually(
            lambda: member.ask(f"cinder/volumes/{volume}/")["status"] == status, WAIT_SECONDS, 0.5
        )

    has("available")
    page = f"/project/volumes/{volume}"
    member.open(f"{page}/")
    member.send(f"{page}/extend/", new_size="2")
    has("available")
    member.send(f"{page}/create_snapshot/", name="point")
    eventually(
        lambda: member.named("cinder/volumesnapshots/", "point")["status"] == "available",
        WAIT_SECONDS,
    )
    member.send(f"{page}/attach/", instance=server)
    has("in-use")
    assert "holder" in member.open("/project/volumes/")
    member.send(f"/project/instances/{server}/detach_volume", volume=volume)
    has("available")
    point = str(member.named("cinder/volumesnapshots/", "point")["id"])
    member.act("volume_snapshots", "delete", point)
    eventually(lambda: not member.items("cinder/volumesnapshots/"), WAIT_SECONDS)
    member.act("volumes", "delete", volume)
    eventually(lambda: not member.items("cinder/volumes/"), WAIT_SECONDS)
    member.act("instances", "delete", server)
    eventually(lambda: not member.items("nova/servers/"), WAIT_SECONDS)


def test_networks_and_security_groups(member: Person) -> None:
    [network, *_] = member.items("neutron/networks/")
    page = member.open(f"/project/networks/{network['id']}/detail")
    assert network["name"] in page
    for tab in ("subnets_tab", "ports_tab"):
        member.open(f"/project/networks/{network['id']}/detail?tab=network_tabs__{tab}")
    assert member.open("/project/network_topology/json")
    member.send("/project/security_groups/create/", name="web", description="pages")
    group = str(member.named("network/securitygroups/", "web")["id"])
    member.send(
        f"/project/security_groups/{group}/add_rule/",
        id=group,
        rule_menu="tcp",
        direction="ingress",
        port_or_range="port",
        port="443",
        remote="cidr",
        cidr="0.0.0.0/0",
    )
    assert "443" in member.open(f"/project/security_groups/{group}/")
    member.act("security_groups", "delete", group)
    assert "web" not in {one["name"] for one in member.items("network/securitygroups/")}


def test_images_and_keys(member: Person) -> None:
    image = member.named("glance/images/", "cirros")
    member.open(f"/project/images/{image['id']}/")
    assert member.ask(f"glance/images/{image['id']}/")["status"] == "active"
    made = member.ask(
        "glance/images/",
        "PUT",
        name="mine",
        source_type="file-direct",
        data="mine.qcow2",
        visibility="private",
        container_format="bare",
        disk_format="qcow2",
        min_disk=0,
        min_ram=0,
        protected=False,
    )
    assert made["status"] == "queued"
    assert made["upload_url"]
    member.ask(f"glance/images/{made['id']}/", "DELETE")
    assert member.ask("nova/keypairs/", "POST", name="key", key_type="ssh")["private_key"]
    member.ask("nova/keypairs/key", "DELETE")
    assert member.items("nova/keypairs/") == []
