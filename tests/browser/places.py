"""All pages of the dashboard, with something to see on each."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.page import Page
from dashboard.rights import May
from dashboard.sections import SECTIONS
from tests.functional.audit.leaks import Proxmox
from tests.functional.cloud import EmbeddedCloud, eventually
from tests.functional.dashboard.aged import age
from tests.functional.dashboard.browser import Browser

FOREIGN = 150_778
"""The VMID of a VM that isn't ours."""

NOT_PAGES = frozenset({"/servers/rows"})
"""Parts of a page."""


OFTEN = frozenset(
    {
        *("/", "/servers", "/servers/{failed}", "/servers/{server}/storage"),
        *("/images/{empty}", "/quotas", "/usage", "/login"),
    }
)
"""Looked at in every run; all others in the long tier."""


@dataclass(frozen=True)
class Place:
    """A page to look at."""

    path: str
    """With names of what is looked at, such as `{server}`."""
    person: str
    """Who looks; nobody: a visitor who isn't logged in."""

    @property
    def name(self) -> str:
        """What its pictures are called."""
        name = re.sub(r"[^a-z]+", "-", self.path.lower()).strip("-") or "overview"
        return f"{name}-admin" if self.path in _BOTH and self.person == "admin" else name


#: a page's path → the paths to look at; others are looked at as they are
_SEVERAL: Mapping[str, tuple[str, ...]] = {
    "/explain": ("/explain", "/explain?what={server}", "/explain?what={failed}"),
    "/servers": ("/servers", "/servers?name=nothing"),
    "/servers/create": ("/servers/create", "/servers/create?volume={volume}"),
    "/servers/{server_id:uuid}": ("/servers/{server}", "/servers/{failed}"),
    "/servers/{server_id:uuid}/{action}": tuple(
        f"/servers/{{server}}/{one}" for one in ("resize", "reset", "rebuild", "rescue", "image")
    ),
    "/volumes/{volume_id:uuid}/{action}": tuple(
        f"/volumes/{{volume}}/{one}" for one in ("extend", "retype", "upload", "edit")
    ),
    "/volumes/snapshots/{copy_id:uuid}/revert": ("/volumes/snapshots/{snapshot}/revert",),
    "/volumes/snapshots/{copy_id:uuid}/delete": ("/volumes/snapshots/{snapshot}/delete",),
    "/volumes/backups/{copy_id:uuid}/restore": ("/volumes/backups/{backup}/restore",),
    "/volumes/backups/{copy_id:uuid}/delete": ("/volumes/backups/{backup}/delete",),
    "/explain/decisions": ("/explain/decisions", "/explain/decisions?what={failed}"),
    "/explain/what-if": (
        "/explain/what-if",
        "/explain/what-if?flavor={flavor}&image={image}&network=none",
    ),
    "/audit": ("/audit", "/audit?show=all"),
    "/audit/{number:int}": ("/audit/{finding}",),
    "/audit/{number:int}/heal": ("/audit/{finding}/heal",),
    "/migrations/bulk/{number:int}": ("/migrations/bulk/{bulk}",),
    "/services/{service_id:uuid}/{change}": (
        "/services/{service}/disable",
        "/services/{service}/force-down",
    ),
    "/groups/{cluster_id:uuid}/{action}": ("/groups/{cluster}/recover",),
    "/search": (
        "/search",
        "/search?for=-1",
    ),
    "/projects/{project_id}/members/remove": (
        "/projects/{project}/members/remove?user={user}&role={role}",
    ),
    "/access/{credential_id}/delete": ("/access/{credential}/delete",),
    "/keypairs/delete": ("/keypairs/delete?name=laptop",),
    "/servers/{server_id:uuid}/charts": ("/servers/{server}/charts?period=week",),
    "/nodes/{host}/charts": (
        "/nodes/pve1/charts?period=day",
        "/nodes/pve1/charts?period=year&storage=shared",
    ),
    "/usage": ("/usage", "/usage?period=month"),
    "/images/{image_id:uuid}": ("/images/{image}", "/images/{empty}"),
}
#: what administrators see otherwise
_BOTH = (
    *("/", "/servers/{failed}", "/servers?all_tenants=1", "/quotas?project=demo"),
    *("/usage?all_tenants=1", "/usage?project={project}"),
)
_NAMES: Mapping[str, str] = {
    "{server_id:uuid}": "{server}",
    "{port_id:uuid}": "{port}",
    "{volume_id:uuid}": "{volume}",
    "{image_id:uuid}": "{image}",
    "{group_id:uuid}": "{group}",
    "{network_id:uuid}": "{network}",
    "{cluster_id:uuid}": "{cluster}",
    "{server_group_id:uuid}": "{server_group}",
    "{subnet_id:uuid}": "{subnet}",
    "{node_id:uuid}": "{node}",
    "{project_id}": "{project}",
    "{user_id}": "{user}",
    "{group_id}": "{team}",
    "{role_id}": "{role}",
    "{flavor_id}": "{special}",
    "{aggregate_id:int}": "{aggregate}",
    "{host}": "pve1",
}


def places() -> list[Place]:
    """Return all pages that browsers get, the login first."""
    pages = [one for section in SECTIONS for one in section.pages if one.method == "GET"]
    found = [Place("/login", "")]
    for page in pages:
        if page.path not in NOT_PAGES:
            person = "admin" if page.may in (May.OPERATE, May.MANAGE) else "member"
            found += [Place(path, person) for path in _paths(page)]
    return [*found, *(Place(path, "admin") for path in _BOTH)]


def _paths(page: Page) -> tuple[str, ...]:
    path = page.path
    for parameter, name in _NAMES.items():
        path = path.replace(parameter, name)
    return _SEVERAL.get(page.path, (path,))


@contextlib.contextmanager
def furnished(cloud: EmbeddedCloud, operator: Browser) -> Iterator[dict[str, str]]:
    """Have one of each thing; return their IDs by the names of `Place.path`."""
    connection, admin = cloud.connection(), cloud.connection("micronova-admin")
    compute, image = connection.compute, connection.image
    vast = admin.compute.create_flavor(name="vast", vcpus=2, ram=512, disk=1_000_000)
    special = _special_flavor(admin, str(connection.current_project_id))
    bridge = connection.network.find_network("vmbr0")
    wanted: dict[str, Any] = {
        "image_id": image.find_image("cirros").id,
        "flavor_id": compute.find_flavor("m1.nano").id,
        "networks": [{"uuid": bridge.id}],
    }
    keypair = compute.create_keypair(name="laptop")
    group = _security_group(connection)
    apart = compute.create_server_group(name="apart", policy="anti-affinity")
    network = connection.network.create_network(name="mine")
    subnet = connection.network.create_subnet(
        network_id=network.id, ip_version=4, cidr="192.168.7.0/24", gateway_ip=None
    )
    user = str(connection.current_user_id)
    credential = connection.identity.create_application_credential(user, name="backup")
    servers = [
        compute.create_server(
            **{**wanted, "networks": [{"uuid": one} for one in (network.id, bridge.id)]},
            name="web-1",
            metadata={"tier": "front"},
            security_groups=[{"name": "web"}],
            scheduler_hints={"group": apart.id},
        ),
        compute.create_server(name="db-1", **{**wanted, "flavor_id": vast.id}),
    ]
    cluster = _scaling_group(connection)
    team = _team(admin, user, str(connection.current_project_id))
    volume = connection.block_storage.create_volume(name="data", size=1)
    empty = connection.image.create_image(
        name="own", disk_format="qcow2", container_format="bare", hw_disk_bus="scsi"
    )
    compute.wait_for_server(servers[0], wait=60)
    age(cloud, servers[0].id)
    eventually(lambda: compute.get_server(servers[1]).status == "ERROR")
    eventually(lambda: connection.block_storage.get_volume(volume).status == "available")
    copy = {"volume_id": volume.id, "name": "before"}
    snapshot = connection.block_storage.create_snapshot(**copy)
    eventually(lambda: connection.block_storage.get_snapshot(snapshot).status == "available")
    backup = connection.block_storage.create_backup(**copy)
    eventually(lambda: connection.block_storage.get_backup(backup).status == "available")
    fast = admin.compute.create_aggregate(name="fast", availability_zone="nova")
    admin.compute.add_host_to_aggregate(fast, "pve2")
    admin.compute.set_aggregate_metadata(fast, {"disk": "nvme"})
    hosts = {one.host: one.id for one in admin.compute.services(binary="nova-compute")}
    bulk = _drain(operator, "pve3")
    pve = Proxmox(cloud)
    pve.make_vm(FOREIGN, "pve1", name="by-hand", tags="micronova")
    try:
        yield {
            "finding": _finding(operator),
            "bulk": bulk,
            "service": hosts["pve1"],
            "flavor": wanted["flavor_id"],
            "server": servers[0].id,
            "failed": servers[1].id,
            "volume": volume.id,
            "snapshot": snapshot.id,
            "backup": backup.id,
            "port": next(
                iter(connection.network.ports(device_id=servers[0].id, network_id=network.id))
            ).id,
            "image": wanted["image_id"],
            "empty": empty.id,
            "group": group.id,
            "network": network.id,
            "cluster": cluster.id,
            "node": next(connection.clustering.nodes(cluster_id=cluster.id)).id,
            "server_group": apart.id,
            "subnet": subnet.id,
            "credential": credential.id,
            "project": str(connection.current_project_id),
            "user": user,
            "team": team.id,
            "aggregate": fast.id,
            "special": special.id,
            "role": admin.identity.find_role("member").id,
        }
    finally:
        admin.compute.delete_flavor(vast)
        admin.compute.delete_flavor(special)
        compute.delete_keypair(keypair)
        connection.identity.delete_application_credential(user, credential)
        compute.delete_server_group(apart)
        connection.clustering.delete_cluster(cluster)
        eventually(lambda: not list(connection.clustering.clusters()))
        connection.clustering.delete_profile(cluster.profile_id)
        _delete_servers(connection)
        connection.network.delete_security_group(group)
        connection.network.delete_network(network)
        admin.compute.remove_host_from_aggregate(fast, "pve2")
        admin.compute.delete_aggregate(fast)
        pve.call("DELETE", f"nodes/pve1/qemu/{FOREIGN}")
        # last: the tokens of its users are revoked, and refused if made within the same second
        admin.identity.delete_group(team)


def _special_flavor(admin: Any, project_id: str) -> Any:
    """Make a private flavor with an extra spec of each kind."""
    flavor = admin.compute.create_flavor(name="special", vcpus=2, ram=512, disk=1, is_public=False)
    specs = {"hw:tpm_version": "2.0", "hw:cpu_policy": "dedicated", "tier": "gold"}
    admin.compute.create_flavor_extra_specs(flavor, specs)
    admin.compute.flavor_add_tenant_access(flavor, project_id)
    return flavor


def _team(admin: Any, user: str, project: str) -> Any:
    """Make a group with a user, who may look at a project by it."""
    team = admin.identity.create_group(name="shop", description="Of the web shop")
    admin.identity.add_user_to_group(user, team)
    role = admin.identity.find_role("reader")
    admin.identity.assign_project_role_to_group(project, team, role)
    return team


def _scaling_group(connection: Any) -> Any:
    """Make a group of two servers that run."""
    networks = [{"network": "vmbr0"}]
    properties = {"flavor": "m1.nano", "image": "cirros", "networks": networks}
    spec = {"type": "os.nova.server", "version": "1.0", "properties": properties}
    profile = connection.clustering.create_profile(name="shop", spec=spec)
    limits = {"desired_capacity": 2, "min_size": 1, "max_size": 5}
    group = connection.clustering.create_cluster(name="shop", profile_id=profile.id, **limits)
    eventually(lambda: connection.clustering.get_cluster(group).status == "ACTIVE")
    return group


def _delete_servers(connection: Any) -> None:
    """Delete the project's servers, which are on its network and in its groups."""
    for one in connection.compute.servers():
        connection.compute.delete_server(one)
    eventually(lambda: not list(connection.compute.servers()))


def _security_group(connection: Any) -> Any:
    """Make a group of servers that anyone may reach by HTTPS, and one network by SSH."""
    group = connection.network.create_security_group(name="web", description="Of the shop")
    rule = {"security_group_id": group.id, "direction": "ingress", "protocol": "tcp"}
    for port, more in ((443, {}), (22, {"remote_ip_prefix": "192.0.2.0/24"})):
        ports = {"port_range_min": port, "port_range_max": port}
        connection.network.create_security_group_rule(**rule, **ports, **more)
    return group


def _drain(operator: Browser, host: str) -> str:
    """Drain a node and take it back; return the number of the drain."""
    operator.get(f"/nodes/{host}/drain")
    operator.submit(f"/nodes/{host}/drain")
    path = operator.path
    operator.until(path, lambda _: "hx-get" not in operator.page.text)
    operator.get(f"/nodes/{host}")
    [enable] = [one.action for one in operator.parsed.forms if one.action.endswith("/enable")]
    operator.submit(enable.removeprefix("/dashboard"))
    return path.rpartition("/")[2]


def _finding(operator: Browser) -> str:
    """Run an audit; return the number of what it found."""
    operator.get("/audit")
    operator.submit("/audit")
    operator.until("/audit", lambda _: "hx-get" not in operator.page.text)
    links = operator.get("/audit?show=all").links
    found = [one for one in links if re.search(r"/audit/\d+$", one)]
    assert found, operator.parsed.text
    return found[0].rpartition("/")[2]
