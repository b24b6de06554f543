"""One Proxmox VE cluster as a ``port.Hypervisor``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from oslo_config import cfg

from common.messages.commands import (
    Build,
    Copy,
    MakeVnet,
    RemoveImage,
    RemoveVnet,
    RetireTemplate,
    StoreImage,
    StrictGroup,
)
from common.messages.consoles import ConsoleTarget
from common.messages.facts import HaService, Inspection, OtherVm
from common.messages.filters import Filter, FilterCheck, Filtered
from common.messages.guests import Diagnostics, GuestTarget, PasswordProblem
from common.messages.inventory import ClusterInventory
from common.messages.measurements import Measured
from common.messages.questions import Measure, SetPassword
from common.messages.queues import Queue
from common.messages.tasks import TaskFacts
from common.streams import Stream
from compute.hypervisor.port import Detail, MadeVnet, Observation, Removal, Work
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.cluster import proven
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.cluster.stray_volumes import StrayVolumes
from compute.hypervisor.proxmox.console import opening
from compute.hypervisor.proxmox.ha import affinity, service
from compute.hypervisor.proxmox.ha.rules import has_rules
from compute.hypervisor.proxmox.inspect import (
    diagnostics,
    inspection,
    measurements,
    others,
    task_list,
)
from compute.hypervisor.proxmox.inspect.inventory import InventoryReader
from compute.hypervisor.proxmox.observe import facts
from compute.hypervisor.proxmox.observe.refresh import Refresher
from compute.hypervisor.proxmox.observe.snapshot import Snapshot
from compute.hypervisor.proxmox.sdn import vnets as sdn_vnets
from compute.hypervisor.proxmox.settings import ClusterSettings
from compute.hypervisor.proxmox.storage import image_files
from compute.hypervisor.proxmox.vm import filtering, guest_agent, steering
from compute.hypervisor.proxmox.vm.disk_copy import ProxmoxDiskCopy
from compute.hypervisor.proxmox.vm.machine import ProxmoxMachine
from compute.hypervisor.proxmox.vm.owner_mark import ProxmoxOwnerMark
from compute.hypervisor.proxmox.vm.templates import Templates
from compute.hypervisor.proxmox.volume.holder import ProxmoxVolume


class ProxmoxHypervisor:
    """The hosts of one cluster; safe for any number of threads."""

    has_consoles = True

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        settings: ClusterSettings,
        client: Client | None = None,
        stray_volumes: StrayVolumes | None = None,
    ) -> None:
        self._conf, self._settings = conf, settings
        self.shared = Shared(settings, client, stray_volumes)
        self._refresher = Refresher(
            self.shared.client,
            conf.compute.content_seconds,
            conf.compute.detail_seconds,
            guests=conf.metrics.guests,
        )
        self._templates = Templates(self.shared)
        self._one_look = threading.Lock()
        self.shared.refresh = self._refresh
        self.shared.relist = self._relist
        self.shared.relist_networks = self._relist_networks

    @property
    def cluster(self) -> str:
        """The cluster's configured name."""
        return self._settings.name

    @property
    def nodes(self) -> frozenset[str]:
        """See ``port.Hypervisor``."""
        return self._settings.hosts

    def guard_writes(self, guard: Callable[[], None]) -> None:
        """See ``port.Hypervisor``."""
        self.shared.client.guard = guard

    @property
    def settings(self) -> ClusterSettings:
        """The cluster's settings."""
        return self._settings

    def last_snapshot(self) -> Snapshot:
        """Return what the last refresh read; refreshes if there was none, or raises
        HypervisorError."""
        return self.shared.snapshot

    def observe(self) -> Observation:
        """See ``port.Hypervisor``. Two bulk calls, and those of the slower facts that are due."""
        return facts.observation(self._conf, self._settings, self._refresh())

    def _refresh(self) -> Snapshot:
        with self._one_look:
            # Within the lock, so that an older snapshot never replaces a newer one.
            self.shared.snapshot = self._refresher.refresh()
            return self.shared.snapshot

    def _relist(self, node: str, storage: str) -> None:
        with self._one_look:
            self._refresher.expire_images(node, storage)
            self.shared.snapshot = self._refresher.refresh()

    def _relist_networks(self) -> None:
        with self._one_look:
            self._refresher.expire_networks()
            self.shared.snapshot = self._refresher.refresh()

    def inventory(self, known: Collection[int], read: Collection[int] = ()) -> ClusterInventory:
        """See ``port.Hypervisor``. Three bulk calls, one per storage, one per VM to be read."""
        return InventoryReader(self.shared, known, read).take()

    def group_writer(self, build: Build) -> Callable[[], Detail] | None:
        """See ``port.Hypervisor``."""
        if build.group is None or not self._settings.write_affinity_rules:
            return None
        shared, node = self.shared, build.placed.node

        def proven(vmid: int) -> bool:
            return self.inspect(vmid, node, build.resource_id).ours

        return lambda: affinity.write_group(
            shared.affinity, lambda: shared.snapshot.version, build, proven
        )

    def converge_affinity(
        self, cloud: str, group: StrictGroup, members: Mapping[int, str]
    ) -> None:
        """See ``port.Hypervisor``."""
        if has_rules(self.shared.snapshot.version):
            wanted = members if self._settings.write_affinity_rules else {}
            self.shared.affinity.converge(
                cloud, group, wanted, lambda vmid: self.inspect(vmid, None, members[vmid]).ours
            )

    def machine(self, work: Work) -> ProxmoxMachine:
        """Return the VM of the work's server."""
        return ProxmoxMachine(self.shared, self._templates, work)

    def disk_copy(self, work: Work, command: Copy) -> ProxmoxDiskCopy:
        """See ``port.Hypervisor``."""
        return ProxmoxDiskCopy(self.shared, work, command)

    def retire_template(self, work: Work, command: RetireTemplate) -> Removal:
        """See ``port.Hypervisor``."""
        where = command.placed
        return self._templates.retire(
            work, where.node, where.vmid, command.image_id, command.cloud
        )

    def store_image(
        self, work: Work, command: StoreImage, pieces: Callable[[], Iterator[bytes]]
    ) -> Detail:
        """See ``port.Hypervisor``."""
        return image_files.store(self.shared, work, command, pieces)

    def remove_image(self, work: Work, command: RemoveImage) -> Removal:
        """See ``port.Hypervisor``."""
        return image_files.remove(self.shared, work, command)

    def make_vnet(self, work: Work, command: MakeVnet) -> MadeVnet:
        """See ``port.Hypervisor``. Ten calls, two of them writes."""
        return sdn_vnets.make(self.shared, work, command)

    def remove_vnet(self, work: Work, command: RemoveVnet) -> Removal:
        """See ``port.Hypervisor``."""
        return sdn_vnets.remove(self.shared, work, command)

    def volume(self, work: Work) -> ProxmoxVolume:
        """See ``port.Hypervisor``."""
        return ProxmoxVolume(self.shared, work)

    def inspect(self, vmid: int, node: str | None, server_uuid: str | None) -> Inspection:
        """See ``port.Hypervisor``."""
        return inspection.inspect(self.shared, vmid, node, server_uuid)

    def look_at_others(self, wanted: Sequence[OtherVm]) -> list[OtherVm]:
        """See ``port.Hypervisor``. One call each, of several at a time."""
        return others.look(self.shared.client, wanted)

    def ha_service(self, vmid: int) -> HaService | None:
        """See ``port.Hypervisor``. Two calls."""
        client = self.shared.client
        current = client.get("cluster/ha/status/current")
        return service.service(current, client.get("cluster/status"), vmid)

    def owner_mark(self, work: Work) -> ProxmoxOwnerMark:
        """Return the owner mark of the VM of the work's server."""
        return ProxmoxOwnerMark(self.shared, work)

    def steer_migration(self, vmid: int, node: str, server_uuid: str, abort: bool) -> str | None:
        """See ``port.Hypervisor``. Three calls."""
        return steering.steer(self.shared, vmid, node, server_uuid, abort=abort)

    def console_problem(self, target: ConsoleTarget) -> str | None:
        """See ``port.Hypervisor``. Two calls."""
        return opening.problem(self.shared, target)

    def open_console(self, target: ConsoleTarget) -> Stream:
        """See ``port.Hypervisor``. Three calls; the last remains open."""
        return opening.open_console(self.shared, target)

    def diagnose(self, target: GuestTarget) -> Diagnostics:
        """See ``port.Hypervisor``. Two calls."""
        return diagnostics.diagnose(self.shared, target)

    def measure(self, wanted: Measure) -> Measured:
        """See ``port.Hypervisor``. One call."""
        return measurements.read(self.shared.client, wanted)

    def list_tasks(self, node: str, limit: int) -> list[TaskFacts]:
        """See ``port.Hypervisor``. One call."""
        return task_list.read(self.shared.client, node, limit)

    def converge_filter(self, target: GuestTarget, filter_: Filter) -> Filtered:
        """See ``port.Hypervisor``. Six calls where nothing differs, and one a set."""
        vm = (target.node, target.vmid, target.server_uuid)
        path = f"nodes/{target.node}/qemu/{target.vmid}"
        return filtering.converge(
            self.shared.client, path, lambda: proven.config(self.shared, *vm), filter_
        )

    def check_filter(self, target: GuestTarget, filter_: Filter) -> FilterCheck:
        """See ``port.Hypervisor``. Four calls, and one a set."""
        config = proven.config(self.shared, target.node, target.vmid, target.server_uuid)
        path = f"nodes/{target.node}/qemu/{target.vmid}"
        return filtering.check(self.shared.client, path, config, filter_)

    def set_password(self, order: SetPassword) -> PasswordProblem | None:
        """See ``port.Hypervisor``. Three calls."""
        return guest_agent.set_password(self.shared, order)

    def ping_guest(self, target: GuestTarget) -> PasswordProblem | None:
        """See ``port.Hypervisor``. One call."""
        return guest_agent.ping(self.shared, target)

    def queues(self) -> Mapping[str, tuple[Queue, ...]]:
        """See ``port.Hypervisor``. Those of storages."""
        found = self.shared.storage_queue.queues()
        return {self._settings.host(node): queues for node, queues in found.items()}

    def close(self) -> None:
        """Close the connections."""
        self._refresher.close()
        self.shared.client.close()
