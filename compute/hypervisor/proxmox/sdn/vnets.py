"""The SDN vnets of projects' networks. Only those whose alias names the network are touched.

A vnet takes effect once the configuration of the whole cluster was applied, which reloads the
network of every node. Several that are made or removed at a time are applied together.

The lock of the SDN configuration (since 9.0) is not taken: nobody learns the token of one whose
answer, or holder, was lost, and it would keep everybody from changing anything. While others hold
it, Proxmox VE refuses our changes, which are tried again later.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from common.failures import Verdict
from common.messages.commands import MakeVnet, RemoveVnet
from common.messages.reports import Category
from common.resources import vnets
from compute.hypervisor.port import HypervisorError, MadeVnet, Removal, Work
from compute.hypervisor.proxmox.api import calls, privileges
from compute.hypervisor.proxmox.api.calls import Purpose
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.sdn import changes
from compute.hypervisor.proxmox.sdn.changes import Entry

#: looks at a node that reloads its network, seconds between them
SETTLE_SECONDS = (0.2, 1.0, 3.0, 6.0)
_TYPE = "vxlan"
_VNI_TYPES = frozenset({_TYPE, "evpn"})
_VNETS = "cluster/sdn/vnets"


def make(shared: Shared, work: Work, command: MakeVnet) -> MadeVnet:
    """Create the vnet unless it is there, and see it on the placed node.

    Raises HypervisorError.
    """
    zone = _zone(shared, command.zone)
    vnet = _Vnet(shared, work, command.vnet, command)
    found = vnet.look()
    if found is None:
        vnet.require_free(command)
        vnet.require_alone()
        vnet.create(command)
    elif "state" not in found and vnet.on_node(command.zone):
        return MadeVnet(int(zone.get("mtu") or vnets.MTU), found=True)
    vnet.apply(lambda: _is_there(vnet, command.zone))
    vnet.await_node(command.zone)
    shared.relist_networks()
    return MadeVnet(int(zone.get("mtu") or vnets.MTU))


def remove(shared: Shared, work: Work, command: RemoveVnet) -> Removal:
    """Delete the vnet, apply it, and see it gone. Raises HypervisorError."""
    vnet = _Vnet(shared, work, command.vnet, command)
    found = vnet.look()
    if found is None:
        return Removal(True)
    if found.get("state") != changes.DELETED:
        vnet.require_alone()
        vnet.delete()
    vnet.apply(lambda: vnet.look() is None)
    shared.relist_networks()
    names = (f"vnet {command.vnet}",)
    gone = vnet.look() is None
    return Removal(gone, names) if gone else Removal(gone, (), names)


class _Vnet:
    """One vnet, and the network that its alias must name."""

    def __init__(
        self, shared: Shared, work: Work, name: str, command: MakeVnet | RemoveVnet
    ) -> None:
        self._shared, self._client, self._work = shared, shared.client, work
        self._name, self._network_id, self._cloud = name, command.resource_id, command.cloud

    def look(self) -> Entry | None:
        """Return the listed vnet with its pending values. Raises if the vnet isn't ours."""
        for one in self._client.get(_VNETS, pending=1):
            if one.get("vnet") != self._name:
                continue
            if not changes.is_network(one, self._network_id, self._cloud):
                raise HypervisorError(
                    Category.PROTECTED,
                    f"Vnet {self._name} is not of network {self._network_id} of this cloud by its "
                    "alias. It was not touched.",
                )
            return dict(one)
        return None

    def require_free(self, command: MakeVnet) -> None:
        """Raise HypervisorError (protected) if another vnet has the VNI.

        Proxmox VE takes none twice in a cluster's zones of these types (VxlanPlugin,
        ``vnet_update_hook``).
        """
        listed = self._client.get("cluster/sdn/zones", pending=1)
        zones = {one.get("zone") for one in listed if one.get("type") in _VNI_TYPES}
        for one in self._client.get(_VNETS, pending=1):
            zone = changes.value(one, "zone")
            if zone not in {command.zone, *zones} or one.get("vnet") == self._name:
                continue
            if str(changes.value(one, "tag")) == str(command.vni):
                # What is passed over from now on includes it.
                self._shared.relist_networks()
                raise HypervisorError(
                    Category.PROTECTED,
                    f"VNI {command.vni} of zone {zone} is vnet {one.get('vnet')}'s.",
                    verdict=Verdict.OTHER_VNI,
                )

    def require_alone(self) -> None:
        """Raise HypervisorError (lock) while others have changes that are not applied.

        Lists leave out what the token may not see: so it must see all (authorization).
        """
        hidden = changes.hidden(self._client.get("access/permissions"))
        if hidden:
            needed = [
                need
                for path in hidden
                for need in privileges.of(Purpose.VNETS, at={calls.SDN: path})
            ]
            raise HypervisorError(
                Category.AUTHORIZATION,
                "Nothing is applied while others may have changes in the SDN configuration that "
                f"the token does not see: it lacks SDN.Audit on {', '.join(hidden)}.",
                remedy=self._client.granting(needed),
            )
        waiting = list(self._of_others())
        if waiting:
            raise HypervisorError(
                Category.LOCK,
                "Nothing is applied while others have changes in the SDN configuration that "
                f"are not: {', '.join(waiting)}.",
                remedy="as root on a node of the cluster: pvesh set /cluster/sdn",
            )

    def _of_others(self) -> Iterator[str]:
        listed = self._client.get(_VNETS, pending=1)
        yield from changes.of_others("vnet", listed)
        for kind in ("zone", "controller"):
            found = self._client.get(f"cluster/sdn/{kind}s", pending=1)
            yield from changes.of_others(kind, found)
        for one in listed:
            # Ours have no subnets.
            if not vnets.is_ours(str(one["vnet"])) and one.get("state") != changes.DELETED:
                found = self._client.get(f"{_VNETS}/{one['vnet']}/subnets", pending=1)
                yield from changes.of_others("subnet", found)

    def create(self, command: MakeVnet) -> None:
        """Configure the vnet; if the answer is lost, the current configuration decides."""
        owner = self._network_id, self._cloud
        alias = vnets.alias(*owner, command.epoch, command.project_id)
        values = {"zone": command.zone, "tag": command.vni, "alias": alias}
        try:
            self._client.post(_VNETS, vnet=self._name, **values)
        except ApiError:
            if self.look() is None:
                raise

    def delete(self) -> None:
        """Delete the vnet from the configuration, which decides if the answer is lost."""
        try:
            self._client.delete(f"{_VNETS}/{self._name}")
        except ApiError:
            found = self.look()
            if found is not None and found.get("state") != changes.DELETED:
                raise

    def apply(self, done: Any) -> None:
        """Apply the configuration unless another network's command has ``done`` it."""
        with _one_at_a_time(self._shared, self._work):
            if done():
                return
            self.require_alone()
            try:
                upid = str(self._client.put("cluster/sdn"))
                self._work.report(upid=upid)
                self._shared.tasks.wait(self._work, upid)
            except ApiError:
                # Applied or not: the current state decides.
                if not self._settled(done):
                    raise

    def await_node(self, zone: str) -> None:
        """Wait until the placed node has the vnet. Raises HypervisorError (network) if not."""
        if not self._settled(lambda: self.on_node(zone)):
            node = self._work.command.placed.node
            raise HypervisorError(
                Category.NETWORK, f"Vnet {self._name} is applied, but node {node} lacks it."
            )

    def on_node(self, zone: str) -> bool:
        """Return whether the placed node has reloaded its network with it."""
        node = self._work.command.placed.node
        listed = self._client.get(f"nodes/{node}/sdn/zones/{zone}/content")
        return any(
            one.get("vnet") == self._name and one.get("status") == "available" for one in listed
        )

    def _settled(self, done: Any) -> bool:
        for seconds in SETTLE_SECONDS:
            if done():
                return True
            self._work.pause(seconds)
        return bool(done())


def _is_there(vnet: _Vnet, zone: str) -> bool:
    found = vnet.look()
    return found is not None and "state" not in found and vnet.on_node(zone)


def _zone(shared: Shared, name: str) -> Entry:
    """Return the zone as it is applied. Raises HypervisorError for one of another type."""
    for one in shared.client.get("cluster/sdn/zones", running=1):
        if one.get("zone") == name:
            if one.get("type") != _TYPE:
                raise HypervisorError(
                    Category.CONFIGURATION,
                    f"Zone {name} is of type {one.get('type')}; {_TYPE} is needed.",
                )
            return dict(one)
    raise HypervisorError(
        Category.CONFIGURATION,
        f"The token sees no zone {name} that is applied in cluster {shared.settings.name}.",
    )


@contextmanager
def _one_at_a_time(shared: Shared, work: Work) -> Iterator[None]:
    while not shared.applying.acquire(timeout=1.0):
        work.check_time()
    try:
        yield
    finally:
        shared.applying.release()
