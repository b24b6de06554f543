"""Networks of projects that the record lacks: by their vnets, and by the ports of servers. Pure.

A vnet's alias names its network and the project. A port's mark names the network, its project, and
the subnet of each address: so a network on a VLAN, which no cluster knows, is found by
the servers on it. A network without servers has no subnet that anything shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from common.messages.facts import MarkedAddress, NicFacts
from common.messages.inventory import SeenVm, SeenVnet
from common.resources.states import ResourceType
from conductor.audit.facts import Facts
from conductor.audit.restoring.items import Item, Known, Verdict, is_proven


@dataclass
class LostNetwork:
    """What clusters show of one network."""

    id: str
    owner: str = ""
    bridge: str = ""
    vlan: int | None = None
    zone: str | None = None
    vni: int | None = None
    vnets: list[tuple[str, str]] = field(default_factory=list)
    """(cluster, zone) of its vnets, which are named like its bridge."""
    subnets: dict[str, MarkedAddress] = field(default_factory=dict)
    """By their CIDRs."""
    projects: set[str] = field(default_factory=set)
    """Others that have servers on it."""
    where: list[str] = field(default_factory=list)
    recorded: bool = False
    """Whether it is a network of the record, which lacks subnets of it."""

    def has_vnet(self, cluster: str, one: SeenVnet) -> None:
        """Note a vnet of it."""
        self.owner, self.bridge = self.owner or one.project_id, one.vnet
        self.zone, self.vni = one.zone, one.tag
        self.vnets.append((cluster, one.zone))
        self.where.append(f"vnet {one.vnet} of zone {one.zone} in cluster {cluster}")

    def has_port(self, cluster: str, vm: SeenVm, nic: NicFacts) -> None:
        """Note a server's interface on it."""
        assert nic.port is not None
        self.owner = self.owner or nic.port.network_owner
        self.bridge = self.bridge or nic.bridge
        self.vlan = self.vlan or nic.vlan
        if vm.project_id and vm.project_id != nic.port.network_owner:
            self.projects.add(vm.project_id)
        for address in nic.port.addresses:
            if address.cidr:
                self.subnets.setdefault(address.cidr, address)
        self.where.append(f"interface {nic.mac} of VM {vm.vmid} in cluster {cluster}")


def networks(facts: Facts, known: Known) -> Iterator[Item]:
    """Yield the networks, and the subnets of networks, that the record lacks."""
    for lost in _found(facts).values():
        there = facts.networks.get(lost.id)
        lacks = sorted(lost.subnets.keys() - known.cidrs.get(lost.id, frozenset()))
        if there is not None and (not lacks or (there.bridge, there.vlan) != _wire(lost)):
            continue
        about = (ResourceType.NETWORK, lost.id, lost.where[0])
        if not lost.owner:
            text = "Nothing names its project. Its VNI, or VLAN tag, is given to nobody."
            yield Item(Verdict.LEAVE, *about, text)
        elif there is not None:
            lost.recorded = True
            text = f"Its subnets {', '.join(lacks)} were made since."
            yield Item(Verdict.ADOPT, *about, text, found=lost)
        else:
            text = f"Network {lost.id} of project {lost.owner} was made since."
            if not lost.subnets:
                text += " No server shows its subnets: make them again."
            yield Item(Verdict.ADOPT, *about, text, found=lost)


def _wire(lost: LostNetwork) -> tuple[str, int | None]:
    return lost.bridge, lost.vlan


def _found(facts: Facts) -> Mapping[str, LostNetwork]:
    """Return what clusters show of the networks of projects, by their IDs."""
    found: dict[str, LostNetwork] = {}
    for name, inventory in facts.inventories.items():
        for vnet in inventory.vnets or ():
            if vnet.cloud == facts.cloud:
                found.setdefault(vnet.network_id, LostNetwork(vnet.network_id)).has_vnet(
                    name, vnet
                )
        for vm in inventory.vms:
            if vm.server_uuid is None or not is_proven(facts.cloud, vm):
                continue
            for nic in vm.nics or ():
                if nic.port is not None and nic.port.network_id:
                    network_id = nic.port.network_id
                    found.setdefault(network_id, LostNetwork(network_id)).has_port(name, vm, nic)
    return found
