"""Reads a cluster for the doctor: some calls for the cluster, three for each node online.

All is read one after the other, so that a cluster has at most one call of it at a time.
"""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from common.log import logger
from common.messages.reports import Category
from compute.doctor.facts import Answer, Endpoint, Facts, NodeFacts, TemplateFacts
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api import paths
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.observe.snapshot import ListedVm, Node, Snapshot, Unread
from compute.hypervisor.proxmox.settings import ClusterSettings
from compute.hypervisor.proxmox.vmconfig import disks, hardware

LOG = logger(__name__)

#: templates whose configuration is read: two calls each
MOST_TEMPLATES = 20


def _always() -> bool:
    return True


@dataclass(frozen=True)
class Scope:
    """How much is read: all of it when an operator asks, less at an agent's start."""

    most_nodes: int | None = None
    """Of those whose agents the configuration has; None: all."""
    go_on: Callable[[], bool] = _always
    """Whether to read further; asked before each node and template."""


def gather(client: Client, snapshot: Snapshot, scope: Scope) -> Facts:
    """Return the facts of a cluster, whose snapshot is there. What can't be read is left out."""
    settings, reader = client.settings, _Reader(client)
    user, path = settings.token.user, paths.token(settings.token)
    users = reader.read("access/users", ())
    facts = Facts(
        settings,
        tuple(_endpoints(settings)),
        snapshot,
        granted=reader.read("access/permissions", {}),
        options=reader.read("cluster/options", {}),
        storages=reader.read("storage", ()),
        ha_status=reader.read("cluster/ha/status/current", ()),
        ha_resources=reader.read("cluster/ha/resources", ()),
        ha_rules=reader.read("cluster/ha/rules", ()),
        token=reader.read(path, {}),
        acl=reader.read("access/acl", ()),
        firewall=reader.read("cluster/firewall/options", {}),
        devices=reader.read("cluster/mapping/pci", ()),
        vnets=reader.read("cluster/sdn/vnets", ()),
        user=next((one for one in users if one.get("userid") == user), {}),
        details=dict(_nodes(reader, snapshot, scope)),
        templates=tuple(_templates(reader, snapshot, scope)),
    )
    return dataclasses.replace(facts, unread=dict(reader.unread))


class _Reader:
    """Reads, and remembers what could not be read."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.unread: dict[str, Unread] = {}

    def read(self, path: str, nothing: Any) -> Any:
        """Return the answer of a GET; ``nothing`` where it can't be read."""
        try:
            found = self.client.get(path)
        except HypervisorError as error:
            LOG.info("%s can't be read: %s", path, error.message)
            # An older release has not all of it.
            if error.category is not Category.API_NOT_SUPPORTED:
                self.unread[path] = Unread(error.message.rstrip(". \n"), error.remedy)
            return nothing
        return nothing if found is None else found


def _nodes(reader: _Reader, snapshot: Snapshot, scope: Scope) -> Iterator[tuple[str, NodeFacts]]:
    for node in itertools.islice(_online(reader.client.settings, snapshot), scope.most_nodes):
        if not scope.go_on():
            return
        path = f"nodes/{node.name}"
        networks = reader.read(f"{path}/network", ())
        services = reader.read(f"{path}/services", ())
        yield node.name, NodeFacts(_offset(reader, path), networks, services)


def _online(settings: ClusterSettings, snapshot: Snapshot) -> Iterator[Node]:
    """Yield the nodes that are online and whose agents the configuration has."""
    for node in sorted(snapshot.nodes.values(), key=lambda one: one.name):
        if node.online and (not settings.hosts or node.name in settings.hosts):
            yield node


def _offset(reader: _Reader, path: str) -> float | None:
    began = time.time()
    seen = reader.read(f"{path}/time", {}).get("time")
    return None if seen is None else float(seen) - (began + time.time()) / 2


def _templates(reader: _Reader, snapshot: Snapshot, scope: Scope) -> Iterator[TemplateFacts]:
    client = reader.client
    nodes = {one.name for one in _online(client.settings, snapshot)}
    found = (
        vm
        for vm in sorted(snapshot.vms.values(), key=lambda one: one.vmid)
        if vm.template and client.settings.in_band(vm.vmid) and vm.node in nodes
        if hardware.image_of_template(vm.name) is not None
    )
    for vm in itertools.islice(found, MOST_TEMPLATES):
        if not scope.go_on():
            return
        config = reader.read(f"nodes/{vm.node}/qemu/{vm.vmid}/config", None)
        if config is not None:
            yield TemplateFacts(vm.vmid, vm.node, config, _lost(client, snapshot, vm, config))


def _lost(client: Client, snapshot: Snapshot, vm: ListedVm, config: Answer) -> str:
    """Return a template's root disk if its storage works and hasn't got it."""
    volid = str(config.get(disks.ROOT_DISK, "")).partition(",")[0]
    storage = snapshot.storage(vm.node, volid.partition(":")[0])
    if storage is None or not storage.active:
        return ""
    try:
        client.get(paths.volume(vm.node, volid))
    except HypervisorError as error:
        return volid if isinstance(error, ApiError) and error.no_volume else ""
    return ""


def _endpoints(settings: ClusterSettings) -> Iterator[Endpoint]:
    """Look at each configured address by itself."""
    for host, port in settings.endpoints:
        name = f"{host}:{port}"
        client = Client(dataclasses.replace(settings, endpoints=((host, port),)))
        try:
            status: list[Answer] = client.get("cluster/status")
        except HypervisorError as error:
            trusted = error.category is not Category.CONFIGURATION
            yield Endpoint(name, error.message, error.remedy or Endpoint.line, trusted)
            continue
        finally:
            client.close()
        members = frozenset(str(one["name"]) for one in status if one.get("type") == "node")
        ends = _certificate_end(settings, host, port)
        yield Endpoint(name, certificate_ends=ends, members=members)


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
