"""What a stage is furnished with: images, what its agent may do, databases."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import sqlalchemy as sa

from db import engine, schema
from placement.db import migrate
from simulator.state.access import Grant
from simulator.state.cluster import Cluster
from simulator.state.model import GIB, MIB, Volume
from simulator.state.sdn_config import Zone
from simulator.state.seed import add_storage
from tests.functional import backends

#: the cloud's id
CLOUD = "chaos"
#: a zone for vnets of projects' networks
ZONE = "tenants"
#: an ISO image that every node has on its own storage
CD = "tool.iso"
#: shared storages of volumes: one takes snapshots by itself, of the other they are copies
THIN, COPYING = "thin", "copying"


def image_name(number: int) -> str:
    """The name of a further image."""
    return f"chaos-{number:04d}"


def put_images(cluster: Cluster, count: int) -> None:
    """Put so many further images into the cluster, and an ISO image."""
    with cluster.turn():
        for node in cluster.nodes:
            own = cluster.place("local", node)
            cluster.add_volume(Volume(*own, f"iso/{CD}", "iso", "iso", 16 * MIB, 16 * MIB))
        place = cluster.place("shared", "pve1")
        for number in range(count):
            cluster.add_volume(
                Volume(
                    *place,
                    f"import/{image_name(number)}.qcow2",
                    "import",
                    "qcow2",
                    16 * MIB,
                    16 * MIB,
                    virtual_size=GIB // 8,
                )
            )


def grant(cluster: Cluster, token: Mapping[str, str]) -> None:
    """Give the agent what only affinity rules need, see docs/proxmox.md."""
    with cluster.turn():
        cluster.access.roles["MicronovaHA"] = frozenset({"Sys.Console"})
        for kind, who in (("user", token["user"]), ("token", token["tokenid"])):
            cluster.access.grants.append(Grant("/", who, kind, "MicronovaHA", propagate=False))
        cluster.save_access()


def add_zone(cluster: Cluster, token: Mapping[str, str]) -> None:
    """Give the cluster a VXLAN zone, and the agent what vnets need, see docs/networks.md."""
    with cluster.turn():
        for kind, who in (("user", token["user"]), ("token", token["tokenid"])):
            cluster.access.grants.append(Grant("/sdn", who, kind, "PVESDNAdmin"))
        cluster.save_access()
        cluster.sdn.zones[ZONE] = Zone(ZONE, "vxlan", [], {"peers": "10.0.0.1"})
        cluster.sdn.apply()
        for node in cluster.nodes.values():
            node.sdn_version = cluster.sdn.version


def add_volume_storages(cluster: Cluster) -> None:
    """Give the cluster storages for volumes, unless it has them."""
    with cluster.turn():
        for name, kind in ((THIN, "rbd"), (COPYING, "lvm")):
            if name not in cluster.storages:
                add_storage(cluster, name, kind, shared=True)


def identify(made: sa.Engine) -> None:
    """Name the cloud of new tables, as the migrations do."""
    with made.begin() as connection:
        connection.execute(schema.cloud_identity.insert().values(id=1, cloud_id=CLOUD))


def databases(postgres: backends.Postgres) -> str:
    """Make both databases, up to date; return the URL of the cloud's."""
    word = secrets.token_hex(12)
    postgres.execute(
        f"CREATE ROLE micronova LOGIN PASSWORD '{word}'",
        "CREATE DATABASE micronova OWNER micronova",
        "CREATE DATABASE placement",
    )
    url = postgres.url("micronova", "micronova", word)
    made = engine.writer(url)
    schema.metadata.create_all(made)
    identify(made)
    made.dispose()
    migrate.upgrade(postgres.url("placement"))
    return url
