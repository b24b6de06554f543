"""The actions of the enumeration: what comes before each, and what it makes of the server."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa

from common import ids
from common.errors import MicronovaError
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.interfaces import Attachment
from conductor.rpc.servers.servers import NewServerImage, RebuildServer
from db import schema
from tests.chaos.cloud import IMAGE, Cloud
from tests.chaos.dressing import CD

LARGER = FlavorSnapshot("2", "m1.micro", 2, 256, 2)
#: linked clones and other disks on local storage cannot move
MOVABLE = {"vm_storage": "shared"}

Ask = Callable[[Cloud, str, str], None]


def by_name(cloud: Cloud, uuid: str, action: str) -> None:
    """Ask for an action that needs no more than its name."""
    cloud.act(uuid, action)


def _asking(method: str, *arguments: Any) -> Ask:
    """Return what calls a method of the conductor's client with the server and these."""

    def ask(cloud: Cloud, uuid: str, action: str) -> None:
        context = cloud.context()
        call = getattr(cloud.client, method)
        cloud._ask(method, lambda: call(context, uuid, *arguments))

    return ask


def _end_resize(cloud: Cloud, uuid: str, action: str) -> None:
    context = cloud.context()
    cloud._ask("end_resize", lambda: cloud.client.end_resize(context, uuid, action))


def _attach(cloud: Cloud, uuid: str, action: str) -> None:
    context = cloud.context()
    cloud._ask(action, lambda: cloud.client.attach_interface(context, uuid, _NIC, wait=False))


def _detach(cloud: Cloud, uuid: str, action: str) -> None:
    """Detach the interface that came last, but the first: what is checked expects that one."""
    columns = schema.ports.c
    query = sa.select(columns.id).where(columns.server_uuid == uuid)
    _, *more = cloud.rows(query.order_by(columns.position))
    port = more[-1].id if more else uuid
    context = cloud.context()
    cloud._ask(action, lambda: cloud.client.detach_interface(context, uuid, port))


def _unshelve_elsewhere(cloud: Cloud, uuid: str, action: str) -> None:
    """Ask for the first other host, by name."""
    (row,) = cloud.rows(sa.select(schema.servers.c.host).where(schema.servers.c.uuid == uuid))
    hosts = schema.hosts.c.host
    (other,) = cloud.rows(sa.select(hosts).where(hosts != row.host).order_by(hosts).limit(1))
    cloud.act(uuid, action, host=other.host)


_NIC = Attachment(ids.named("network", "vmbr0"))
_BACKUP = NewServerImage("copy", backup_type="daily", rotation=1)
_RESIZE = _asking("resize_server", LARGER)
_MIGRATE = _asking("migrate_server", None)
_RESCUE = _asking("rescue_server", ids.named("image", IMAGE), "of one run")
_FROM_CD = _asking("rescue_server", ids.named("image", CD), "of one run")
_TO_CD = _asking("rebuild_server", RebuildServer(ids.named("image", CD)))
_LIVE = _asking("live_migrate_server", None, None)


@dataclasses.dataclass(frozen=True)
class Scenario:
    """One action on a server that was just built."""

    was: str
    """Its vm_state before; that of a failed action too."""
    becomes: str
    before: tuple[tuple[str, str], ...] = ()
    """Actions that must have succeeded on it, each with the vm_state that it ends in."""
    ask: Ask = by_name
    action: str = ""
    """Its name in the ledger, where the scenario's is another."""
    larger: bool = False
    """Whether a resize makes the server larger until it is confirmed or reverted."""
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Of the cluster."""
    writes: bool = False
    """Whether only what it writes to Proxmox VE are cases: all else is as in another scenario."""


_RESIZED = (("resize", "resized"),)
_MIGRATED = (("migrate", "resized"),)
_WITH_CD = (("rebuild to a CD", "active"),)

ACTIONS: dict[str, Scenario] = {
    "stop": Scenario("active", "stopped"),
    "start": Scenario("stopped", "active", (("stop", "stopped"),)),
    "reboot-hard": Scenario("active", "active"),
    "pause": Scenario("active", "paused"),
    "unpause": Scenario("paused", "active", (("pause", "paused"),)),
    "suspend": Scenario("active", "suspended"),
    "resume": Scenario("suspended", "active", (("suspend", "suspended"),)),
    "resize": Scenario("active", "resized", ask=_RESIZE, larger=True),
    "confirmResize": Scenario("resized", "active", _RESIZED, _end_resize, larger=True),
    "revertResize": Scenario("resized", "active", _RESIZED, _end_resize, larger=True),
    "rebuild": Scenario(
        "active", "active", ask=_asking("rebuild_server", RebuildServer(ids.named("image", IMAGE)))
    ),
    "rescue": Scenario("active", "rescued", ask=_RESCUE),
    "unrescue": Scenario("rescued", "active", (("rescue", "rescued"),)),
    "rebuild to a CD": Scenario("active", "active", ask=_TO_CD, action="rebuild"),
    "rescue from a CD": Scenario("active", "rescued", ask=_FROM_CD, action="rescue"),
    "unrescue from a CD": Scenario(
        "rescued", "active", (("rescue from a CD", "rescued"),), action="unrescue"
    ),
    "shelve": Scenario("active", "shelved_offloaded"),
    "unshelve": Scenario("shelved_offloaded", "active", (("shelve", "shelved_offloaded"),)),
    "unshelve elsewhere": Scenario(
        "shelved_offloaded",
        "active",
        (("shelve", "shelved_offloaded"),),
        _unshelve_elsewhere,
        "unshelve",
        options=MOVABLE,
    ),
    "createImage": Scenario(
        "active", "active", ask=_asking("create_server_image", NewServerImage("copy"))
    ),
    "createBackup": Scenario("active", "active", ask=_asking("create_server_image", _BACKUP)),
    "attach_interface": Scenario("active", "active", ask=_attach),
    "detach_interface": Scenario("active", "active", (("attach_interface", "active"),), _detach),
    "soft-delete": Scenario("active", "soft-delete"),
    "restore": Scenario("soft-delete", "active", (("soft-delete", "soft-delete"),)),
    "migrate": Scenario("active", "resized", ask=_MIGRATE, options=MOVABLE),
    "confirm of migrate": Scenario(
        "resized", "active", _MIGRATED, _end_resize, "confirmResize", options=MOVABLE
    ),
    "revert of migrate": Scenario(
        "resized", "active", _MIGRATED, _end_resize, "revertResize", options=MOVABLE
    ),
    "live-migration": Scenario("active", "active", ask=_LIVE, options=MOVABLE),
    "migrate with a CD": Scenario(
        "active", "resized", _WITH_CD, _MIGRATE, "migrate", options=MOVABLE, writes=True
    ),
    "revert with a CD": Scenario(
        "resized",
        "active",
        _WITH_CD + _MIGRATED,
        _end_resize,
        "revertResize",
        options=MOVABLE,
        writes=True,
    ),
    "live-migration with a CD": Scenario(
        "active", "active", _WITH_CD, _LIVE, "live-migration", options=MOVABLE, writes=True
    ),
}


def ask(cloud: Cloud, uuid: str, name: str) -> None:
    """Ask for what a scenario is about; the request may be lost."""
    scenario = ACTIONS[name]
    scenario.ask(cloud, uuid, scenario.action or name)


def delete_images(cloud: Cloud, *servers: str) -> None:
    """Delete the images of these servers, or of all; their templates follow."""
    columns = schema.images.c
    query = sa.select(columns.id).where(
        columns.server_uuid.in_(servers) if servers else columns.server_uuid.is_not(None)
    )
    for one in cloud.rows(query):
        with contextlib.suppress(MicronovaError):
            cloud.client.delete_image(cloud.context(), one.id)
