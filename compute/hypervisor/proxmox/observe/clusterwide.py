"""Facts of a whole cluster that change only by configuration, read less often.

Version, privileges and mapped devices, HA rules, SDN vnets: a few calls, however large the
cluster. What can't be read is logged, and is as it was read before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from common.log import logger
from common.messages.facts import OwnerMark, VnetFacts
from common.messages.inventory import SeenVnet
from common.resources import vnets
from common.resources.states import ResourceType
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api import privileges
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.ha import rules
from compute.hypervisor.proxmox.ha.rules import NodeAffinity
from compute.hypervisor.proxmox.observe import devices
from compute.hypervisor.proxmox.observe.reads import Reads
from compute.hypervisor.proxmox.observe.snapshot import Node
from compute.hypervisor.proxmox.vmconfig.storage_types import LVM

LOG = logger(__name__)

_VERSION, _VNETS = "version", "cluster/sdn/vnets"
#: the option of a storage's configuration, since Proxmox VE 9.0
_CHAIN = "snapshot-as-volume-chain"

T = TypeVar("T")


@dataclass(frozen=True)
class ClusterwideFacts:
    """The result of the last read."""

    version: str = ""
    missing: tuple[str, ...] = ()
    grant: str | None = None
    devices: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    rules: tuple[NodeAffinity, ...] = ()
    vnets: Mapping[str, str] = field(default_factory=dict)
    """Vnet → zone, of those that were applied."""
    all_vnets: tuple[VnetFacts, ...] = ()
    project_vnets: tuple[SeenVnet, ...] | None = None
    """Those of them that say that they are networks'; None: they can't be read."""
    chained: frozenset[str] = frozenset()
    """The LVM storages whose snapshots are volumes of their own."""
    unfiltered: str = ""
    """See ``ClusterFacts``."""


class Clusterwide:
    """Holds the last result until the next read is due. Used by one thread."""

    def __init__(self, reads: Reads, content_seconds: float, detail_seconds: float) -> None:
        self._reads, self._client = reads, reads.client
        self._content_seconds, self._detail_seconds = content_seconds, detail_seconds
        self._rights_due = self._plans_due = 0.0
        self._version = ""
        self._missing: tuple[str, ...] = ()
        self._grant: str | None = None
        self._devices: dict[str, dict[str, int]] = {}
        self._rules: tuple[NodeAffinity, ...] = ()
        self._vnets: tuple[Mapping[str, Any], ...] = ()
        self._chained: frozenset[str] = frozenset()
        self._groups: frozenset[str] = frozenset()
        """The LVM storages that were listed when that was read."""
        self._unfiltered = "whether the datacenter's firewall is on isn't known"
        self._logged: dict[str, str] = {}

    def look(self, nodes: Iterable[Node]) -> ClusterwideFacts:
        """Read what is due. What can't be read is as it was read before."""
        now = time.monotonic()
        if self._rights_due <= now:
            self._version = self._optional("The version", self._read_version, self._version)
            self._devices = self._optional("The mapped devices", self._read_devices, self._devices)
            self._read_rights(nodes)
            lacking = self._reads.unread().keys() & {_VERSION, privileges.PERMISSIONS}
            self._rights_due = now + (0 if lacking else self._detail_seconds)
        elif self._missing or self._client.forbidden:
            # Missing privileges may be granted any moment, and somebody waits for it.
            self._read_rights(nodes)
        if self._plans_due <= now:
            what = "The rules of high availability"
            self._rules = self._optional(what, self._read_rules, self._rules)
            self._vnets = self._optional("The SDN vnets", self._read_vnets, self._vnets)
            # An answer that is lost changes nothing: ports would be made that nothing filters.
            what, before = "The firewall's options", self._unfiltered
            self._unfiltered = self._optional(what, self._read_firewall, before)
            self._plans_due = now + self._content_seconds
            self._groups = frozenset()
        self._look_at_chains(nodes)
        return ClusterwideFacts(
            self._version,
            self._missing,
            self._grant,
            self._devices,
            self._rules,
            {str(one["vnet"]): str(one["zone"]) for one in self._vnets},
            tuple(map(_fact, self._vnets)),
            None if _VNETS in self._reads.unread() else tuple(_of_networks(self._vnets)),
            self._chained,
            self._unfiltered,
        )

    def expire_vnets(self) -> None:
        """Have them read with the next look."""
        self._plans_due = 0.0

    def _read_rights(self, nodes: Iterable[Node]) -> None:
        self._client.forbidden = False

        def read() -> list[privileges.Need] | None:
            return missing_privileges(self._reads, storages_of(nodes))

        missing = self._optional("The token's privileges", read, None)
        if missing is None:
            return
        self._grant = self._client.granting(missing) if missing else None
        self._missing = tuple(f"{need.path} ({', '.join(need.privileges)})" for need in missing)

    def _read_version(self) -> str:
        return str(self._reads.get(_VERSION).get("version", ""))

    def _read_devices(self) -> dict[str, dict[str, int]]:
        mappings = self._reads.get("cluster/mapping/pci")
        return devices.by_node(
            mappings, self._reads.get(privileges.PERMISSIONS) if mappings else {}
        )

    def _read_rules(self) -> tuple[NodeAffinity, ...]:
        if rules.has_rules(self._version):
            return rules.of_rules(self._reads.get("cluster/ha/rules", type="node-affinity"))
        groups = self._reads.get("cluster/ha/groups")
        return rules.of_groups(groups, self._reads.get("cluster/ha/resources") if groups else ())

    def _read_firewall(self) -> str:
        return why_unfiltered(self._reads)

    def _read_vnets(self) -> tuple[Mapping[str, Any], ...]:
        listed = self._reads.get(_VNETS, running=1)
        return tuple(one for one in listed if one.get("zone"))

    def _look_at_chains(self, nodes: Iterable[Node]) -> None:
        """Read how LVM storages keep snapshots: when that is due, or where one is new."""
        there = (one for node in nodes for one in node.storages.values())
        groups = frozenset(one.name for one in there if one.type == LVM)
        # A storage that is removed and added again may have other options.
        self._groups &= groups
        if not groups <= self._groups:
            self._optional("The storages", self._read_chains, None)

    def _read_chains(self) -> None:
        listed = self._reads.get("storage", type=LVM)
        self._chained = frozenset(
            str(one["storage"]) for one in listed if int(one.get(_CHAIN) or 0)
        )
        # Only what is listed is known: one may have been removed since the nodes reported it.
        self._groups = frozenset(str(one["storage"]) for one in listed)

    def _optional(self, what: str, read: Callable[[], T], nothing: T) -> T:
        """Return what is read, or ``nothing``; a refusal is logged once, not each time."""
        try:
            found = read()
        except HypervisorError as error:
            if self._logged.get(what) != error.message:
                LOG.warning("%s can't be read: %s", what, error.message)
                self._logged[what] = error.message
            return nothing
        self._logged.pop(what, None)
        return found


def _fact(one: Mapping[str, Any]) -> VnetFacts:
    tag = one.get("tag")
    owner = vnets.owner(str(one.get("alias")))
    network_id = owner[0] if owner is not None else ""
    return VnetFacts(str(one["vnet"]), str(one["zone"]), int(tag) if tag else None, network_id)


def why_unfiltered(client: Client | Reads) -> str:
    """Return why no VM of a cluster is filtered; empty: they are, if they say so.

    A node's own switch is about the traffic of the node alone (PVE::Firewall, ``compile_rules``).
    """
    on = int(client.get("cluster/firewall/options").get("enable", 0))
    return "" if on else "the datacenter's firewall is off"


def _of_networks(listed: Iterable[Mapping[str, Any]]) -> Iterator[SeenVnet]:
    for one in listed:
        name, owner = str(one["vnet"]), vnets.owner(str(one.get("alias")))
        if vnets.is_ours(name) and owner is not None:
            made = vnets.epoch(str(one.get("alias")))
            mark = OwnerMark(owner[1], ResourceType.NETWORK, owner[0], made) if made else None
            project, tag = vnets.project(str(one.get("alias"))), one.get("tag")
            vni = int(tag) if tag else None
            yield SeenVnet(name, str(one["zone"]), *owner, mark, project, vni)


def missing_privileges(
    client: Client | Reads, storages: Iterable[tuple[str, Iterable[str]]]
) -> list[privileges.Need]:
    """Return the privileges that the token lacks for these storages (name and contents)."""
    settings = client.settings
    by_content: dict[str, set[str]] = {"images": set(), "iso": set(), "import": set()}
    seen = False
    for name, contents in storages:
        seen = True
        for content in by_content.keys() & set(contents):
            by_content[content].add(name)
    vm_storages = {settings.vm_storage} if settings.vm_storage else by_content["images"]
    iso_storages = {settings.iso_storage} if settings.iso_storage else by_content["iso"]
    granted = client.get(privileges.PERMISSIONS)
    needed = privileges.needs(
        sorted(vm_storages), sorted(iso_storages), sorted(by_content["import"])
    )
    if not seen:
        needed.append(privileges.ANY_STORAGE)
    return privileges.lacking(granted, needed)


def storages_of(nodes: Iterable[Node]) -> list[tuple[str, frozenset[str]]]:
    """Return name and contents of the nodes' storages."""
    return [(one.name, one.content) for node in nodes for one in node.storages.values()]


def configured_storages(client: Client) -> list[tuple[str, frozenset[str]]]:
    """Return name and contents of the storages that the token sees and our hosts may use.

    Needs no privilege, unlike a look at the nodes. Raises HypervisorError.
    """
    hosts = client.settings.hosts
    found = []
    for one in client.get("storage"):
        nodes = frozenset(str(one.get("nodes") or "").split(",")) - {""}
        if not one.get("disable") and (not hosts or not nodes or nodes & hosts):
            found.append((str(one["storage"]), frozenset(str(one.get("content", "")).split(","))))
    return found
