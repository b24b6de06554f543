"""The refresh of a cluster's snapshot: two bulk calls each time, slower facts when they are due.

``/cluster/resources`` and ``/cluster/status`` are one call each, whatever the cluster's size. A
node's processors and bridges, and a storage's import volumes, have longer intervals and are read a
few at a time; a shared storage is read once for all its nodes. No VM is ever polled.
"""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from common.guest.hardware import version
from common.log import logger
from common.messages.facts import ImageFacts
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api import paths
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.observe import bridges, images, pins, resources
from compute.hypervisor.proxmox.observe import zones as zones_of
from compute.hypervisor.proxmox.observe.clusterwide import Clusterwide
from compute.hypervisor.proxmox.observe.expiry import Expiry
from compute.hypervisor.proxmox.observe.reads import Reads
from compute.hypervisor.proxmox.observe.snapshot import (
    Node,
    NodeDetail,
    Snapshot,
    Storage,
    Unread,
    quorate,
)

LOG = logger(__name__)

#: slower reads that run at the same time
READERS = 6

T = TypeVar("T")
#: node → zone → status
Zones = Mapping[str, Mapping[str, str]]


class Refresher:
    """Caches rarely read facts between refreshes. Used by one thread at a time."""

    def __init__(
        self,
        client: Client,
        content_seconds: float,
        detail_seconds: float,
        *,
        guests: bool = False,
    ) -> None:
        """``guests``: whether snapshots have what VMs use."""
        self._guests = guests
        self._client, self._reads = client, Reads(client)
        self._content_seconds, self._detail_seconds = content_seconds, detail_seconds
        self._details: dict[str, tuple[float, NodeDetail]] = {}
        self._images: dict[tuple[str, str], tuple[float, tuple[ImageFacts, ...]]] = {}
        self._pinned: dict[tuple[str, str], tuple[float, dict[int, str]]] = {}
        self._disk_sizes: dict[tuple[object, ...], int] = {}
        self._broken: dict[tuple[str, str], tuple[float, dict[str, str]]] = {}
        self._vnets: Mapping[str, str] = {}
        self._clusterwide = Clusterwide(self._reads, content_seconds, detail_seconds)
        self._expiry = Expiry(client, content_seconds)
        self._expiry_read: concurrent.futures.Future[None] | None = None
        self._readers = concurrent.futures.ThreadPoolExecutor(READERS, "compute-refresh")

    def refresh(self) -> Snapshot:
        """Return a new snapshot. Raises HypervisorError without nodes, VMs and quorum.

        All else that can't be read is as it was read before.
        """
        listed = self._reads.needed("cluster/resources")
        status = self._reads.needed("cluster/status")
        nodes = resources.nodes(listed, status)
        # What only a host's own facts need is read by the worker that carries its agent.
        ours = self._ours(nodes.values())
        self._read_due_details(ours)
        self._read_due_images(nodes.values())
        self._read_due_pins(ours)
        zones = zones_of.statuses(listed)
        self._read_due_zones(nodes.values(), zones)
        self._read_due_expiry(ours)
        full = {name: self._with_slow_facts(node) for name, node in nodes.items()}
        clusterwide = self._clusterwide.look(full.values())
        if clusterwide.vnets != self._vnets:
            # The nodes' vnets changed: the details are read again with the next refresh.
            self._vnets = clusterwide.vnets
            self._details = {name: (0.0, one) for name, (_, one) in self._details.items()}
        return Snapshot(
            quorate=quorate(status),
            nodes={
                name: self._with_zones(
                    _with_chains(node, clusterwide.chained),
                    clusterwide.vnets,
                    zones.get(name, {}),
                )
                for name, node in full.items()
            },
            vms=resources.vms(listed),
            guests=resources.guests(listed) if self._guests else (),
            version=clusterwide.version,
            devices=clusterwide.devices,
            missing=clusterwide.missing,
            grant=clusterwide.grant,
            silent=self._still_silent(nodes),
            rules=clusterwide.rules,
            vnets=clusterwide.all_vnets,
            project_vnets=clusterwide.project_vnets,
            unfiltered=clusterwide.unfiltered,
            unread=self._still_unread(nodes, zones),
        )

    def expire_images(self, node: str, storage: str) -> None:
        """Have a storage's images listed with the next refresh."""
        for key in {("", storage), (node, storage)} & self._images.keys():
            self._images[key] = (0.0, self._images[key][1])

    def expire_networks(self) -> None:
        """Have the nodes' networks, and the cluster's vnets, listed with the next refresh."""
        self._details = {name: (0.0, one) for name, (_, one) in self._details.items()}
        self._clusterwide.expire_vnets()

    def _still_unread(self, nodes: Mapping[str, Node], zones: Zones) -> Mapping[str, Unread]:
        """Return what can't be read, but for what is not there, or not to be read, any more."""

        def is_gone(path: str) -> bool:
            kind, _, rest = path.partition("/")
            if kind != "nodes":
                return False
            name, what, *more = rest.split("/")
            node = nodes.get(name)
            if node is None or not node.online:
                return True
            if what == "storage":
                return not (more[0] in node.storages and node.storages[more[0]].active)
            return what == "sdn" and zones.get(name, {}).get(more[1]) != zones_of.ERROR

        self._reads.forget(is_gone)
        return self._reads.unread()

    def _still_silent(self, nodes: Mapping[str, Node]) -> frozenset[str]:
        """Return the nodes that did not answer when they were last asked, and still don't.

        One small call each, served by the same privileged daemon as writes.
        """
        for name in self._client.silent.copy():
            if name in nodes and nodes[name].online:
                try:
                    self._client.get(f"nodes/{name}/lxc")
                    self._client.silent.discard(name)
                except HypervisorError as error:
                    LOG.info("Node %s does not answer yet: %s", name, error.message)
        return frozenset(self._client.silent.copy())

    def close(self) -> None:
        """Start no further reads."""
        self._readers.shutdown(wait=False, cancel_futures=True)

    def _ours(self, nodes: Iterable[Node]) -> list[Node]:
        hosts = self._client.settings.hosts
        return [one for one in nodes if not hosts or one.name in hosts]

    def _read_due_expiry(self, nodes: Iterable[Node]) -> None:
        """Have when something expires read, without waiting for it."""
        reading = self._expiry_read is not None and not self._expiry_read.done()
        if reading or not self._expiry.is_due():
            return
        names = [one.name for one in nodes if one.online]
        self._expiry_read = self._readers.submit(self._expiry.look, names)

    def _read_due_details(self, nodes: Iterable[Node]) -> None:
        now = time.monotonic()
        due = [
            node.name
            for node in nodes
            if node.online and self._details.get(node.name, (0.0, None))[0] <= now
        ]
        for name, (detail, whole) in self._read(due, self._detail):
            # What is lacking is read with the next refresh.
            self._details[name] = (now + (self._detail_seconds if whole else 0), detail)

    def _read_due_images(self, nodes: Iterable[Node]) -> None:
        now = time.monotonic()
        due: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
        for node in nodes:
            for storage in node.storages.values() if node.online else ():
                key = _content_key(node.name, storage)
                fresh = self._images.get(key, (0.0, ()))[0] > now
                contents = storage.content & images.CONTENTS
                if contents and storage.active and not fresh:
                    due.setdefault(key, ([], sorted(contents)))[0].append(node.name)
        read = self._read(list(due.items()), lambda item: self._content(item[0][1], *item[1]))
        for (key, _), found in read:
            self._images[key] = (now + self._content_seconds, found)

    def _read_due_pins(self, nodes: Iterable[Node]) -> None:
        """Read which VMs have volumes on local storages. Each listing costs the node some work."""
        now = time.monotonic()
        there = {
            (node.name, storage.name): storage.content & pins.CONTENTS
            for node in nodes
            for storage in (node.storages.values() if node.online else ())
            if storage.active and not storage.shared and storage.content & pins.CONTENTS
        }
        due = [key for key in there if self._pinned.get(key, (0.0, {}))[0] <= now]
        for key, found in self._read(due, lambda key: self._pins(key, there[key])):
            self._pinned[key] = (now + self._detail_seconds, found)

    def _pins(self, where: tuple[str, str], contents: Iterable[str]) -> dict[int, str]:
        node, storage = where
        path = f"nodes/{node}/storage/{storage}/content"
        listed = [one for kind in sorted(contents) for one in self._reads.get(path, content=kind)]
        return pins.of_storage(storage, listed)

    def _read(self, items: list[Any], read: Callable[[Any], T]) -> Iterable[tuple[Any, T]]:
        """Read several items at a time; a failed item is left for the next refresh."""
        futures = [(item, self._readers.submit(read, item)) for item in items]
        for item, future in futures:
            try:
                yield item, future.result()
            except HypervisorError as error:
                LOG.warning("Reading %s failed: %s", item, error.message)

    def _detail(self, name: str) -> tuple[NodeDetail, bool]:
        """Return a node's facts, and whether all could be read; else some are older.

        Raises HypervisorError if nothing could be read.
        """
        found, failed = self._details.get(name, (0.0, NodeDetail()))[1], 0
        for path, (options, change) in _DETAILS.items():
            try:
                answer = self._reads.get(f"nodes/{name}/{path}", **options)
            except HypervisorError as error:
                LOG.warning("Node %s: %s can't be read: %s", name, path, error.message)
                failed += 1
                if failed == len(_DETAILS):
                    raise
            else:
                found = replace(found, **change(answer))
        return found, not failed

    def _content(
        self, storage: str, nodes: Sequence[str], contents: Sequence[str]
    ) -> tuple[ImageFacts, ...]:
        """Return the images of a storage of these nodes, by the first node that lists it.

        At most two nodes are asked. Raises HypervisorError.
        """
        node, *others = nodes
        path = f"nodes/{node}/storage/{storage}/content"
        try:
            listed = [one for kind in contents for one in self._reads.get(path, content=kind)]
        except HypervisorError as error:
            if not others:
                raise
            LOG.warning("%s can't be read: %s", path, error.message)
            return self._content(storage, others[:1], contents)
        # Nobody needs to ask them any more.
        unasked = {f"nodes/{other}/storage/{storage}/content" for other in others}
        self._reads.forget(unasked.__contains__)
        found = images.facts(storage, listed)
        return tuple(self._with_disk_size(node, image) for image in found)

    def _with_disk_size(self, node: str, image: ImageFacts) -> ImageFacts:
        """Return the image with its disk's size: a listing only has the file's."""
        if image.virtual_size_bytes is not None:
            return image
        file = (image.volid, image.size_bytes, image.created_at)
        if file not in self._disk_sizes:
            try:
                answer = self._reads.get(paths.volume(node, image.volid))
            except HypervisorError as error:
                LOG.warning("The disk size of %s can't be read: %s", image.volid, error.message)
                return image
            self._disk_sizes[file] = int(answer.get("size") or 0)
        return replace(image, virtual_size_bytes=self._disk_sizes[file] or None)

    def _with_slow_facts(self, node: Node) -> Node:
        detail = self._details.get(node.name, (0.0, NodeDetail()))[1]
        found: list[ImageFacts] = []
        pinned: dict[int, str] = {}
        for storage in node.storages.values():
            found += self._images.get(_content_key(node.name, storage), (0.0, ()))[1]
            pinned |= self._pinned.get((node.name, storage.name), (0.0, {}))[1]
        return replace(node, detail=detail, images=tuple(found), pinned=pinned)

    def _with_zones(self, node: Node, vnets: Mapping[str, str], zones: Mapping[str, str]) -> Node:
        """Return the node with the vnets that are applied on it."""
        mine = {
            zone: found for (name, zone), (_, found) in self._broken.items() if name == node.name
        }
        # What was never listed isn't missing.
        listed = node.detail.bridges
        unready = zones_of.unready(vnets, listed, zones, mine) if listed else {}
        usable = tuple(name for name in listed if name not in unready)
        detail = replace(node.detail, bridges=usable)
        return replace(node, detail=detail, unready=unready, zones=zones_of.named(zones))

    def _read_due_zones(self, nodes: Iterable[Node], zones: Zones) -> None:
        """Read which vnets are in error, of zones in error."""
        now = time.monotonic()
        wrong = {
            (node.name, zone)
            for node in nodes
            for zone, status in zones.get(node.name, {}).items()
            if node.online and status == zones_of.ERROR
        }
        self._broken = {key: kept for key, kept in self._broken.items() if key in wrong}
        due = [key for key in sorted(wrong) if self._broken.get(key, (0.0, {}))[0] <= now]
        for key, found in self._read(due, self._zone):
            self._broken[key] = (now + self._content_seconds, found)

    def _zone(self, where: tuple[str, str]) -> dict[str, str]:
        node, zone = where
        return zones_of.broken(self._reads.get(f"nodes/{node}/sdn/zones/{zone}/content"))


def _with_chains(node: Node, chained: frozenset[str]) -> Node:
    """Return the node with what is known of its storages' snapshots."""
    if not chained & node.storages.keys():
        return node
    found = {name: replace(one, chained=name in chained) for name, one in node.storages.items()}
    return replace(node, storages=found)


def _of_status(status: Mapping[str, Any]) -> dict[str, Any]:
    cpu, kernel = status.get("cpuinfo", {}), status.get("current-kernel", {})
    return {
        "version": str(status.get("pveversion", "")),
        "cpu_model": str(cpu.get("model", "")),
        "cpu_vendor": str(cpu.get("vendor", "")),
        "cpu_sockets": int(cpu.get("sockets", 1)),
        "cpu_cores": int(cpu.get("cores", 1)),
        "cpu_flags": tuple(str(cpu.get("flags", "")).split()),
        "architecture": str(kernel.get("machine", "x86_64")),
    }


def _of_network(networks: list[Mapping[str, Any]]) -> dict[str, Any]:
    return {"bridges": bridges.usable(networks), "bridge_vlans": bridges.restricted(networks)}


def _of_machines(machines: list[Mapping[str, Any]]) -> dict[str, Any]:
    return {"machine_version": _newest(machines)}


#: what is read of a node → parameters, and the facts that an answer has
_DETAILS: Mapping[str, tuple[Mapping[str, str], Callable[[Any], dict[str, Any]]]] = {
    "status": ({}, _of_status),
    "network": ({"type": "any_bridge"}, _of_network),
    "capabilities/qemu/machines": ({}, _of_machines),
}


def _newest(machines: Iterable[Mapping[str, Any]]) -> str:
    """Return the newest version of machine types, without Proxmox VE's own suffix."""
    versions = {str(one.get("version", "")).split("+")[0] for one in machines}
    return max(versions, key=version, default="")


def _content_key(node: str, storage: Storage) -> tuple[str, str]:
    return ("" if storage.shared else node, storage.name)
