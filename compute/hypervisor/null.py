"""A driver without a hypervisor, to measure the control plane: VMs are kept in memory.

Nothing survives the process; a repeated command converges as with any driver.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from oslo_config import cfg

from common import clock, ids
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
from common.messages.facts import (
    ClusterFacts,
    HaService,
    HostFacts,
    ImageFacts,
    Inspection,
    OtherVm,
    StorageFacts,
    VmFacts,
)
from common.messages.filters import Filter, FilterCheck, Filtered
from common.messages.guests import Diagnostics, GuestTarget, PasswordProblem, SetPassword
from common.messages.queues import Queue
from common.messages.reports import Category
from common.resources import image_files, vnets
from common.resources.states import PowerState
from common.streams import Stream
from compute.hypervisor.nullcopy import NullCopy
from compute.hypervisor.nullmachine import NullMachine, Vm
from compute.hypervisor.nullvolume import Kept, NullVolume
from compute.hypervisor.port import Detail, HypervisorError, MadeVnet, Observation, Removal, Work
from compute.messages import ClusterInventory, SeenImageFile, SeenVm, SeenVolume

STORAGE = "memory"
#: where uploaded images are, which all hosts share
IMAGES = "images"
NO_CONSOLE = "VMs without a hypervisor have no consoles."


_UNFILTERED = "hosts without a hypervisor filter nothing"


class NullHypervisor:
    """A made-up cluster, from ``[null]`` and ``[compute]``."""

    has_consoles = False

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self.vms: dict[int, Vm] = {}
        self.templates: dict[int, str] = {}
        """Images of servers, by VMID."""
        self.volumes: dict[int, Kept] = {}
        """By the VMID of their holders."""
        self.lock = threading.Lock()
        self._images = tuple(_image(name) for name in conf.null.images)
        self._hosts = tuple(self._host(number) for number in range(conf.null.hosts))

    @property
    def cluster(self) -> str:
        """The cluster's name."""
        return str(self._conf.null.cluster)

    def observe(self) -> Observation:
        """Return the hosts with what the VMs use."""
        with self.lock:
            vms = list(self.vms.items())
        used: dict[str, tuple[int, int]] = {}
        for _, vm in vms:
            count, memory = used.get(vm.node, (0, 0))
            used[vm.node] = (count + 1, memory + vm.memory_mib)
        now = clock.utcnow()
        hosts = []
        images = self._images
        known = tuple(image.id for image in images)
        for host in self._hosts:
            count, memory = used.get(host.node, (0, 0))
            hosts.append(
                replace(
                    host,
                    observed_at=now,
                    running_vms=count,
                    memory_used_mib=memory,
                    images=known,
                    cached_images=known,
                )
            )
        return Observation(
            ClusterFacts(
                self.cluster, "null", True, images, 100_000, 999_999_999, unfiltered=_UNFILTERED
            ),
            tuple(hosts),
            tuple(VmFacts(vmid, vm.node, vm.power, vm.server_uuid) for vmid, vm in vms),
            tuple(host.node for host in hosts),
            whole=True,
        )

    def inventory(self, known: Collection[int], read: Collection[int] = ()) -> ClusterInventory:
        """Return every VM, and the volumes of projects."""
        with self.lock:
            vms, held = list(self.vms.items()), list(self.volumes.items())
            images = self._images
        named = ((one, image_files.parse(one.volid)) for one in images)
        node = self._hosts[0].node
        files = tuple(
            SeenImageFile(
                one.volid, one.storage, node, name.image_id, name.cloud, True, one.size_bytes
            )
            for one, name in named
            if name is not None
        )
        seen = [_seen(vmid, vm) for vmid, vm in vms] + [_holder(*one) for one in held]
        volumes = tuple(
            SeenVolume(one.volid, STORAGE, one.node, vmid, size_bytes=one.size_gib << 30)
            for vmid, one in held
        )
        return ClusterInventory(self.cluster, tuple(seen), volumes, image_files=files)

    def group_writer(self, build: Build) -> None:
        """Do nothing: there are no groups here."""

    def converge_affinity(
        self, cloud: str, group: StrictGroup, members: Mapping[int, str]
    ) -> None:
        """Do nothing: there are no groups here."""

    def machine(self, work: Work) -> NullMachine:
        """Return the VM that the operation is about."""
        return NullMachine(self.vms, self.lock, work)

    def volume(self, work: Work) -> NullVolume:
        """Return the volume that the operation is about."""
        return NullVolume(self.volumes, self.vms, self.lock, work)

    def retire_template(self, work: Work, command: RetireTemplate) -> Removal:
        """Remove the image of a server, if it is there: there are no other templates."""
        vmid = command.placed.vmid
        with self.lock:
            image_id = self.templates.pop(vmid, None)
        return Removal(True, (f"template {vmid}",) if image_id else ())

    def store_image(
        self, work: Work, command: StoreImage, pieces: Callable[[], Iterator[bytes]]
    ) -> Detail:
        """Read the data, and keep nothing but the name."""
        size = sum(len(piece) for piece in pieces())
        upload = image_files.parse(command.volid)
        stored = ImageFacts(
            command.server_uuid if upload is None else image_files.listed(upload),
            command.volid.rpartition("/")[2],
            command.volid,
            size,
            command.volid.rpartition(".")[2],
            IMAGES,
            virtual_size_bytes=size,
        )
        with self.lock:
            self._images = (*self._without(command.volid), stored)
        return {"volume": command.volid, "bytes": size}

    def remove_image(self, work: Work, command: RemoveImage) -> Removal:
        """Forget the name."""
        with self.lock:
            self._images = self._without(command.volid)
        return Removal(True, (f"volume {command.volid}",))

    def make_vnet(self, work: Work, command: MakeVnet) -> MadeVnet:
        """Nothing is to be made."""
        return MadeVnet(vnets.MTU)

    def remove_vnet(self, work: Work, command: RemoveVnet) -> Removal:
        """Nothing was made."""
        return Removal(True, (f"vnet {command.vnet}",))

    def _without(self, volid: str) -> tuple[ImageFacts, ...]:
        return tuple(image for image in self._images if image.volid != volid)

    def disk_copy(self, work: Work, command: Copy) -> NullCopy:
        """Return the copy of a server's disk; only its name is stored."""
        return NullCopy(self.vms, self.volumes, self.templates, self.lock, command)

    def look_at_others(self, wanted: Sequence[OtherVm]) -> list[OtherVm]:
        """Return them without interfaces: nobody else has VMs here."""
        return list(wanted)

    def inspect(self, vmid: int, node: str | None, server_uuid: str | None) -> Inspection:
        """Return what is in memory about a VM."""
        with self.lock:
            vm = self.vms.get(vmid)
        if vm is None:
            return Inspection(vmid)
        return Inspection(
            vmid,
            exists=True,
            node=vm.node,
            ours=vm.server_uuid == server_uuid,
            marked_by=vm.server_uuid or None,
            power_state=vm.power,
            vcpus=vm.vcpus,
            memory_mib=vm.memory_mib,
            disk_gib=vm.disk_gib,
        )

    def ha_service(self, vmid: int) -> HaService | None:
        """There is no high availability."""
        return None

    def owner_mark(self, work: Work) -> NullMachine:
        """Return the VM, which is its own owner mark."""
        return NullMachine(self.vms, self.lock, work)

    def steer_migration(self, vmid: int, node: str, server_uuid: str, abort: bool) -> str:
        """Return that it is over: VMs move at once here."""
        return "VMs without a hypervisor move at once."

    def console_problem(self, target: ConsoleTarget) -> str:
        """Return that there is nothing to look at."""
        return NO_CONSOLE

    def open_console(self, target: ConsoleTarget) -> Stream:
        """Refuse."""
        raise HypervisorError(Category.API_NOT_SUPPORTED, NO_CONSOLE)

    def diagnose(self, target: GuestTarget) -> Diagnostics:
        """Return what is in memory: it has neither disks nor interfaces that transfer anything."""
        vm = self._owned(target)
        return Diagnostics(vm.power, vcpus=vm.vcpus, memory_mib=vm.memory_mib)

    def converge_filter(self, target: GuestTarget, filter_: Filter) -> Filtered:
        """Store it."""
        self._owned(target).filter = filter_
        return Filtered(1)

    def check_filter(self, target: GuestTarget, filter_: Filter) -> FilterCheck:
        """Return no differences: nobody else writes."""
        self._owned(target)
        return FilterCheck()

    def set_password(self, order: SetPassword) -> PasswordProblem:
        """Refuse: there is no guest."""
        self._owned(order.target)
        return PasswordProblem.NOT_SUPPORTED

    def _owned(self, target: GuestTarget) -> Vm:
        with self.lock:
            vm = self.vms.get(target.vmid)
        if vm is None or vm.server_uuid != target.server_uuid:
            raise HypervisorError(Category.PROTECTED, f"VM {target.vmid} isn't the server's.")
        return vm

    def queues(self) -> Mapping[str, tuple[Queue, ...]]:
        """Return none: everything is done at once."""
        return {}

    def close(self) -> None:
        """Do nothing: no connections are open."""

    def _host(self, number: int) -> HostFacts:
        size, compute = self._conf.null, self._conf.compute
        name = f"{size.prefix}{number + 1:04d}"
        images = tuple(image.id for image in self._images)
        return HostFacts(
            host=name,
            cluster=self.cluster,
            node=name,
            uuid=ids.named("host", f"{self.cluster}/{name}"),
            worker=compute.worker,
            availability_zone=compute.availability_zone,
            observed_at=clock.utcnow(),
            hypervisor_type="null",
            hypervisor_version="1",
            host_ip="127.0.0.1",
            cpu_cores=size.vcpus,
            vcpus=size.vcpus,
            memory_mib=size.memory_mib,
            disk_gib=size.disk_gib,
            cpu_allocation_ratio=compute.cpu_allocation_ratio,
            ram_allocation_ratio=compute.ram_allocation_ratio,
            disk_allocation_ratio=compute.disk_allocation_ratio,
            vm_storage=STORAGE,
            storages=(
                StorageFacts(
                    STORAGE, "memory", False, True, size.disk_gib, size.disk_gib, ("images",)
                ),
                StorageFacts(
                    IMAGES, "memory", True, True, size.disk_gib, size.disk_gib, ("import", "iso")
                ),
            ),
            bridges=tuple(size.bridges),
            images=images,
            cached_images=images,
            capabilities={"linked_clone": True, "import_from": True, "upload": True},
        )


def _holder(vmid: int, one: Kept) -> SeenVm:
    return SeenVm(
        vmid,
        one.node,
        status="stopped",
        read=True,
        volume_id=one.volume_id,
        cloud=one.cloud,
        proven=True,
        parked=True,
    )


def _seen(vmid: int, vm: Vm) -> SeenVm:
    return SeenVm(
        vmid,
        vm.node,
        status="running" if vm.power is PowerState.RUNNING else "stopped",
        vcpus=vm.vcpus,
        memory_mib=vm.memory_mib,
        read=True,
        server_uuid=vm.server_uuid,
        cloud=vm.cloud,
        proven=True,
    )


def _image(name: str) -> ImageFacts:
    return ImageFacts(
        ids.named("image", name),
        name,
        f"{STORAGE}:iso/{name}" if name.endswith(".iso") else f"{STORAGE}:import/{name}.qcow2",
        1 << 20,
        "iso" if name.endswith(".iso") else "qcow2",
        STORAGE,
        virtual_size_bytes=1 << 30,
    )
