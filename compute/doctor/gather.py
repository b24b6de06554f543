"""Reads a cluster for the doctor: some calls for the cluster, and three for each node online."""

from __future__ import annotations

import dataclasses
import datetime
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Any

from common.log import logger
from common.messages.reports import Category
from compute.doctor.facts import Answer, Endpoint, Facts, NodeFacts
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.observe.refresh import Refresher
from compute.hypervisor.proxmox.observe.snapshot import Snapshot
from compute.hypervisor.proxmox.settings import ClusterSettings

LOG = logger(__name__)


def gather(settings: ClusterSettings) -> Facts:
    """Return the facts of a cluster. Raises HypervisorError where no endpoint answers."""
    client = Client(settings)
    refresher = Refresher(client, 0, 0)
    try:
        snapshot = refresher.refresh()
        user, name = settings.token.user, settings.token.name
        return Facts(
            settings,
            tuple(_endpoints(settings)),
            snapshot,
            granted=_read(client, "access/permissions", {}),
            options=_read(client, "cluster/options", {}),
            storages=_read(client, "storage", ()),
            ha_status=_read(client, "cluster/ha/status/current", ()),
            ha_resources=_read(client, "cluster/ha/resources", ()),
            token=_read(client, f"access/users/{user}/token/{name}", {}),
            details=dict(_nodes(client, snapshot)),
        )
    finally:
        refresher.close()
        client.close()


def _nodes(client: Client, snapshot: Snapshot) -> Iterator[tuple[str, NodeFacts]]:
    for node in snapshot.nodes.values():
        if not node.online:
            continue
        path = f"nodes/{node.name}"
        yield (
            node.name,
            NodeFacts(
                _offset(client, path),
                _read(client, f"{path}/network", ()),
                str(_read(client, f"{path}/version", {}).get("version", "")),
            ),
        )


def _offset(client: Client, path: str) -> float | None:
    began = time.time()
    seen = _read(client, f"{path}/time", {}).get("time")
    return None if seen is None else float(seen) - (began + time.time()) / 2


def _read(client: Client, path: str, nothing: Any) -> Any:
    """Return what is there; ``nothing`` where the token, or the cluster, doesn't tell."""
    try:
        found = client.get(path)
    except HypervisorError as error:
        LOG.info("%s can't be read: %s", path, error.message)
        return nothing
    return nothing if found is None else found


def _endpoints(settings: ClusterSettings) -> Iterator[Endpoint]:
    """Look at each configured address by itself."""
    for host, port in settings.endpoints:
        name = f"{host}:{port}"
        client = Client(dataclasses.replace(settings, endpoints=((host, port),)))
        try:
            status: list[Answer] = client.get("cluster/status")
        except HypervisorError as error:
            trusted = error.category is not Category.CONFIGURATION
            yield Endpoint(name, error.message, trusted)
            continue
        finally:
            client.close()
        members = frozenset(str(one["name"]) for one in status if one.get("type") == "node")
        yield Endpoint(name, "", True, _certificate_end(settings, host, port), members)


def _certificate_end(settings: ClusterSettings, host: str, port: int) -> datetime.datetime | None:
    """Return until when an endpoint's certificate is valid; None: it isn't checked, or silent."""
    if settings.verify is False:
        return None
    file = settings.verify if isinstance(settings.verify, str) else None
    context = ssl.create_default_context(cafile=file)

    def look() -> str:
        with (
            socket.create_connection((host, port), settings.connect_seconds) as plain,
            context.wrap_socket(plain, server_hostname=host) as secure,
        ):
            return str((secure.getpeercert() or {}).get("notAfter", ""))

    text = _unless_lost(look)
    if not text:
        return None
    return datetime.datetime.fromtimestamp(ssl.cert_time_to_seconds(text), datetime.UTC)


def _unless_lost(look: Callable[[], str]) -> str:
    try:
        return look()
    except OSError as error:
        LOG.info("The certificate can't be read: %s", error)
        return ""
