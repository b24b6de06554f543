"""The inventory of a cluster for the audit: VMs and volumes that are ours or in our band, in bulk.

Four calls for the cluster, one per storage (of each node, unless it is shared). Lists of Proxmox
VE have no descriptions, so only those VMs are read that the record doesn't explain, that are
locked, that lack our tag (a bounded number of them), those asked for by number, and a few of
others' for their VLAN tags and for our disks that they name.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from common import ids
from common.messages.inventory import (
    ClusterInventory,
    SeenAffinity,
    SeenDrive,
    SeenReplica,
    SeenTag,
    SeenVm,
)
from compute.hypervisor.proxmox.api import privileges
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.api.upid import Upid
from compute.hypervisor.proxmox.cluster import holders
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.cluster.strangers import Used
from compute.hypervisor.proxmox.ha.rules import has_rules
from compute.hypervisor.proxmox.inspect.inspection import nics
from compute.hypervisor.proxmox.inspect.references import references, snapshots
from compute.hypervisor.proxmox.inspect.volumes import VolumeReader
from compute.hypervisor.proxmox.vmconfig import disks, marks, volumes
from compute.hypervisor.proxmox.vmconfig.hardware import TAG

#: reads that run at the same time
READERS = 6
#: VMs without our tag that are read in each inventory; the others wait for a later one
UNTAGGED = 100

_CONTENTS = {"images", "iso", "import", "backup"}
_TAGS = re.compile(r"[;, ]+")


class InventoryReader:
    """Takes the inventory of one cluster once."""

    def __init__(self, shared: Shared, known: Collection[int], read: Collection[int] = ()) -> None:
        """``known``: VMIDs that the record explains; ``read``: those to look at closely."""
        self._shared, self._client = shared, shared.client
        self._known = frozenset(known)
        self._read = frozenset(read)
        #: sentence → the node that it is about
        self._unseen: dict[str, str] = {}
        self._active: dict[str, list[Upid]] = {}

    def take(self) -> ClusterInventory:
        """Return the inventory. Raises HypervisorError if the cluster doesn't answer at all."""
        resources = self._client.get("cluster/resources")
        online = self._online(resources, self._client.get("cluster/status"))
        with concurrent.futures.ThreadPoolExecutor(READERS, "compute-inventory") as readers:
            listed = [one for one in resources if "vmid" in one and self._may_be_ours(one)]
            self._read |= frozenset(itertools.islice(self._untagged(listed), UNTAGGED))
            vms = readers.map(lambda one: self._vm(one, online), listed)
            storages = VolumeReader(self._shared, self._unseen)
            volumes = readers.map(
                lambda place: storages.read(*place[:3], has_disks=place[3]),
                self._places(resources, online),
            )
            seen = [one for one in vms if one is not None]
            strangers = self._others(resources, online)
            others = self._shared.strangers.look(strangers, self._used)
            found = [volume for part in volumes for volume in part]
            seen = [storages.with_lost(one, found) for one in seen]
            # What a half-made VM doesn't name, Proxmox VE doesn't remove with it either.
            shells = {one.vmid for one in seen if one.maker is not None and not one.lock_live}
            present = {int(one["vmid"]) for one in listed} - shells
            found = storages.with_makers(found, present, online, readers)
        for privilege in self._shared.snapshot.missing:
            self._unseen[f"The token lacks {privilege}: lists may be short."] = ""
        affinity, short, copied = self._affinity(), self._is_short(), self._replicas()
        return ClusterInventory(
            self._shared.settings.name,
            tuple(seen),
            tuple(found),
            tuple(self._unseen),
            short,
            tuple(sorted({node for node in self._unseen.values() if node})),
            *affinity,
            replicas=copied,
            vnets=self._shared.snapshot.project_vnets,
            other_tags=others.tags,
            other_tags_complete=others.complete,
            other_references=others.references,
            image_files=tuple(sorted(storages.files, key=lambda one: (one.volid, one.node))),
            backups=tuple(sorted(storages.backups, key=lambda one: (one.volid, one.node))),
        )

    def _affinity(self) -> tuple[tuple[SeenAffinity, ...], bool, bool]:
        """Return the written server groups, whether to write them, and whether all were seen."""
        writes = self._shared.settings.write_affinity_rules
        if not has_rules(self._shared.snapshot.version):
            return (), False, True
        try:
            return self._shared.affinity.seen(), writes, True
        except ApiError as error:
            if writes:
                self._unseen[f"The affinity rules can't be read: {error.message}"] = ""
            return (), writes, False

    def _replicas(self) -> tuple[SeenReplica, ...] | None:
        """Return where replication jobs keep copies; a job that is being removed counts too."""
        try:
            return replicas(self._client.get("cluster/replication"))
        except ApiError as error:
            self._unseen[f"The replication jobs can't be read: {error.message}"] = ""
            return None

    def _is_short(self) -> bool:
        """Return whether VMs or storages may be hidden from the token."""
        if any("Audit" in one for one in self._shared.snapshot.missing):
            return True
        try:
            granted = self._client.get("access/permissions")
        except ApiError as error:
            self._unseen[f"The token's rights can't be read: {error.message}"] = ""
            return True
        hidden = sorted(privileges.hidden(granted))
        for path in hidden:
            self._unseen[f"The token does not see what is under {path}: lists are short."] = ""
        return bool(hidden)

    # --- what to look at

    def _untagged(self, listed: Iterable[Mapping[str, Any]]) -> Iterator[int]:
        """Yield VMs of the record without our tag, and so perhaps without their mark."""
        for one in listed:
            if int(one["vmid"]) in self._known and TAG not in _tags(one):
                yield int(one["vmid"])

    def _may_be_ours(self, one: Mapping[str, Any]) -> bool:
        vmid = int(one["vmid"])
        return self._shared.settings.in_band(vmid) or vmid in self._known or TAG in _tags(one)

    def _others(
        self, resources: Iterable[Mapping[str, Any]], online: frozenset[str]
    ) -> dict[int, str]:
        """Return VMID → node of the VMs that are none of ours."""
        return {
            int(one["vmid"]): str(one["node"])
            for one in resources
            if one.get("type") == "qemu" and one["node"] in online and not self._may_be_ours(one)
        }

    def _used(self, vmid: int, node: str) -> Used | None:
        try:
            config = self._client.get(f"nodes/{node}/qemu/{vmid}/config")
        except ApiError:
            # Gone, or hidden from the token: nothing depends on it.
            return None
        named = references(self._shared.settings, config, vmid, node)
        tagged = (nic for nic in nics(config) if nic.vlan is not None)
        tags = (SeenTag(vmid, node, nic.bridge, int(nic.vlan or 0)) for nic in tagged)
        return Used(tuple(tags), tuple(named))

    def _online(
        self, resources: Iterable[Mapping[str, Any]], status: Iterable[Mapping[str, Any]]
    ) -> frozenset[str]:
        members = {one["name"]: one for one in status if one.get("type") == "node"}
        nodes = [str(one["node"]) for one in resources if one.get("type") == "node"]
        online = frozenset(node for node in nodes if members.get(node, {}).get("online", 1))
        for node in nodes:
            if node not in online:
                self._unseen[f"Node {node} is offline."] = node
        return online

    def _places(
        self, resources: Iterable[Mapping[str, Any]], online: frozenset[str]
    ) -> list[tuple[str, str, bool, bool]]:
        """Return (node, storage, shared, lists disks) of each storage to list; a shared one
        once."""
        places: dict[tuple[str, str], tuple[str, str, bool, bool]] = {}
        for one in resources:
            content = set(str(one.get("content", "")).split(","))
            if one.get("type") != "storage" or not content & _CONTENTS:
                continue
            node, name, shared = str(one["node"]), str(one["storage"]), bool(one.get("shared"))
            if one.get("status") == "available" and node in online:
                place = (node, name, shared, "images" in content)
                places.setdefault(("" if shared else node, name), place)
            elif node in online:
                self._unseen[f"Storage {name} is not available on {node}."] = node
        return list(places.values())

    # --- VMs

    def _vm(self, one: Mapping[str, Any], online: frozenset[str]) -> SeenVm | None:
        """Return one VM; None if it was deleted since the list, or has no mark but our tag."""
        vmid, node, lock = int(one["vmid"]), str(one["node"]), one.get("lock")
        memory = int(one.get("maxmem") or 0)
        facts: dict[str, Any] = {
            "vmid": vmid,
            "node": node,
            "kind": str(one.get("type", "")),
            "name": str(one.get("name", "")),
            "status": str(one.get("status", "")),
            "template": bool(one.get("template")),
            "vcpus": int(one.get("maxcpu") or 0) or None,
            "memory_mib": memory >> 20 or None,
            "lock": lock,
        }
        explained = vmid in self._known and lock is None and vmid not in self._read
        if explained or facts["kind"] != "qemu" or node not in online:
            return SeenVm(**facts)
        try:
            config = self._client.get(f"nodes/{node}/qemu/{vmid}/config")
        except ApiError as error:
            if error.no_config:
                return None
            self._unseen[f"VM {vmid} on {node} can't be read: {error.message}"] = node
            return SeenVm(**facts)
        facts |= {"read": True, "lock": config.get("lock"), **whose(config)}
        facts["nics"] = tuple(nics(config))
        settings = self._shared.settings
        ours = settings.in_band(vmid) or vmid in self._known
        facts["parked"] = volumes.parked(config, vmid)
        facts["held"] = volumes.held(config, vmid) if facts["volume_id"] else None
        facts["drives"] = tuple(SeenDrive(*one) for one in disks.drives(config))
        facts["adopted"] = marks.is_adopted(config)
        facts["unstarted"] = facts["status"] == "stopped" and marks.is_unstarted(config)
        facts["references"] = tuple(references(settings, config, vmid, node))
        if not ours and not (facts["server_uuid"] or facts["image_id"] or facts["volume_id"]):
            # Only our tag: anybody may set it.
            return None
        facts["snapshots"] = snapshots(self._client, settings, config, vmid, node)
        return SeenVm(**facts, **self._lock(node, vmid, facts["lock"]))

    def _lock(self, node: str, vmid: int, lock: str | None) -> dict[str, Any]:
        """Return whether a live task explains the lock, and which task left a half-created VM."""
        if lock is None:
            return {}
        try:
            running = self._running(node)
            live = any(holders.may_hold(self._shared, vmid, lock, one) for one in running)
            return {"lock_live": live, "maker": self._maker(node, vmid, lock)}
        except ApiError as error:
            self._unseen[f"The tasks of {node} can't be read: {error.message}"] = node
            return {"lock_live": True}

    def _running(self, node: str) -> list[Upid]:
        if node not in self._active:
            self._active[node] = self._shared.tasks.active(node)
        return self._active[node]

    def _maker(self, node: str, vmid: int, lock: str) -> str | None:
        kind = holders.MAKERS.get(lock)
        if kind is None:
            return None
        me = self._shared.settings.token.id
        if kind in holders.CREATING:
            made = [
                task
                for one in holders.CREATING
                for task in self._shared.tasks.of_vm(node, vmid, one)
            ]
        else:
            made = [
                task
                for task in self._shared.tasks.recent(node, kind)
                if task.who == me and holders.clones_to(self._shared, vmid, task)
            ]
        return next((task.text for task in made if task.who == me), None)


def replicas(jobs: Iterable[Mapping[str, Any]]) -> tuple[SeenReplica, ...]:
    """Return the guest and the target node of each job, as GET /cluster/replication lists it."""
    return tuple(SeenReplica(int(job["guest"]), str(job["target"])) for job in jobs)


def whose(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the owner that a configuration names, and whether all its marks agree."""
    server, image, volume = (_after_prefix(config, name) for name in marks.OWNED)
    cloud = _after_prefix(config, marks.CLOUD)
    project, user = (
        one if one is not None and ids.is_identity(one) else None
        for one in (_after_prefix(config, name) for name in (marks.PROJECT, marks.USER))
    )
    mark = marks.template_mark(image or "", cloud or "")
    if server is not None:
        mark = marks.server_mark(server, cloud or "")
    elif volume is not None:
        mark = marks.volume_mark(volume, cloud or "")
    ours = marks.owner(config, mark) is marks.Owner.OURS
    return {
        "server_uuid": server,
        "image_id": image,
        "cloud": cloud,
        "mark": marks.owner_mark(config),
        "project_id": project,
        "user_id": user,
        "volume_id": volume,
        "snapshot_of": _after_prefix(config, marks.SNAPSHOT_OF),
        "proven": bool(server or image or volume) and ours,
        "smbios_uuid": marks.smbios_uuid(config),
    }


def _after_prefix(config: Mapping[str, Any], prefix: str) -> str | None:
    """Return what follows on the first line of the description that begins so."""
    found = (line.removeprefix(prefix) for line in marks.lines(config) if line.startswith(prefix))
    return next(filter(None, found), None)


def _tags(one: Mapping[str, Any]) -> Sequence[str]:
    return _TAGS.split(str(one.get("tags", "")))
