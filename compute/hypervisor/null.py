"""No hypervisor: VMs live in memory and everything is instant. To measure the control plane.

Nothing survives the process; a repeated command converges like with any driver.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from oslo_config import cfg

from common import clock, ids
from common.messages.commands import Build, RetireTemplate, StrictGroup
from common.messages.facts import (
    ClusterFacts,
    HostFacts,
    ImageFacts,
    Inspection,
    StorageFacts,
    VmFacts,
)
from common.messages.reports import Category
from common.states import PowerState
from compute.hypervisor.port import Detail, HypervisorError, Observation, Removal, Work
from compute.messages import ClusterInventory, SeenVm

CLUSTER = "null"
STORAGE = "memory"


@dataclass
class _Vm:
    server_uuid: str
    node: str
    vcpus: int
    memory_mib: int
    disk_gib: int
    power: PowerState = PowerState.SHUTDOWN


class NullHypervisor:
    """A cluster that is made up, from ``[null]`` and ``[compute]``."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self.vms: dict[int, _Vm] = {}
        self.lock = threading.Lock()
        self._images = tuple(_image(name) for name in conf.null.images)
        self._hosts = tuple(self._host(number) for number in range(conf.null.hosts))

    @property
    def cluster(self) -> str:
        """Its name."""
        return CLUSTER

    def observe(self) -> Observation:
        """The hosts with what the VMs use."""
        with self.lock:
            vms = list(self.vms.items())
        used: dict[str, tuple[int, int]] = {}
        for _, vm in vms:
            count, memory = used.get(vm.node, (0, 0))
            used[vm.node] = (count + 1, memory + vm.memory_mib)
        now = clock.utcnow()
        hosts = []
        for host in self._hosts:
            count, memory = used.get(host.node, (0, 0))
            hosts.append(replace(host, observed_at=now, running_vms=count, memory_used_mib=memory))
        return Observation(
            ClusterFacts(CLUSTER, "null", True, self._images, 100_000, 999_999_999),
            tuple(hosts),
            tuple(VmFacts(vmid, vm.node, vm.power, vm.server_uuid) for vmid, vm in vms),
            tuple(host.node for host in hosts),
            whole=True,
        )

    def inventory(self, known: Collection[int]) -> ClusterInventory:
        """Every VM; there are no volumes."""
        with self.lock:
            vms = list(self.vms.items())
        return ClusterInventory(CLUSTER, tuple(_seen(vmid, vm) for vmid, vm in vms))

    def group_writer(self, build: Build) -> None:
        """There is nobody to be told."""

    def converge_affinity(
        self, cloud: str, group: StrictGroup, members: Mapping[int, str]
    ) -> None:
        """There is nobody to be told."""

    def machine(self, work: Work) -> NullMachine:
        """The VM that the operation is about."""
        return NullMachine(self, work)

    def retire_template(self, work: Work, command: RetireTemplate) -> Removal:
        """There are none."""
        return Removal(True)

    def inspect(self, vmid: int, node: str | None, server_uuid: str | None) -> Inspection:
        """What is remembered of it."""
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

    def custody(self, work: Work) -> NullMachine:
        """The same: the mark is who it belongs to."""
        return NullMachine(self, work)

    def close(self) -> None:
        """Nothing is held."""

    def _host(self, number: int) -> HostFacts:
        size, compute = self._conf.null, self._conf.compute
        name = f"{size.prefix}{number + 1:04d}"
        images = tuple(image.id for image in self._images)
        return HostFacts(
            host=name,
            cluster=CLUSTER,
            node=name,
            uuid=ids.named("host", f"{CLUSTER}/{name}"),
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
            ),
            bridges=tuple(size.bridges),
            images=images,
            cached_images=images,
            capabilities={"linked_clone": True, "import_from": True, "upload": True},
        )


def _seen(vmid: int, vm: _Vm) -> SeenVm:
    return SeenVm(
        vmid,
        vm.node,
        status="running" if vm.power is PowerState.RUNNING else "stopped",
        vcpus=vm.vcpus,
        memory_mib=vm.memory_mib,
        read=True,
        server_uuid=vm.server_uuid,
        proven=True,
    )


def _image(name: str) -> ImageFacts:
    return ImageFacts(
        ids.named("image", name),
        name,
        f"{STORAGE}:import/{name}.qcow2",
        1 << 20,
        "qcow2",
        STORAGE,
        virtual_size_bytes=1 << 30,
    )


class NullMachine:
    """One VM in memory; implements ``port.Machine``."""

    def __init__(self, hypervisor: NullHypervisor, work: Work) -> None:
        self._hypervisor, self._work = hypervisor, work
        self._vmid = work.command.placed.vmid

    @property
    def _vm(self) -> _Vm | None:
        return self._hypervisor.vms.get(self._vmid)

    @property
    def absent(self) -> bool:
        """Whether there is no VM of that id."""
        return self._vm is None

    @property
    def foreign(self) -> bool:
        """Whether the id is another server's."""
        vm = self._vm
        return vm is not None and vm.server_uuid != self._work.command.server_uuid

    @property
    def stuck(self) -> tuple[str, ...]:
        """Nothing here is stuck."""
        return ()

    def check_host(self, build: Build) -> Detail:
        """Refuse an id that another server has."""
        return self.find()

    def ensure_image(self, build: Build) -> Detail:
        """Every image is there."""
        return {}

    def upload_config_drive(self, build: Build, iso: bytes) -> Detail:
        """Nothing is kept of it."""
        return {"bytes": len(iso)}

    def create(self, build: Build) -> Detail:
        """Remember the VM."""
        self.find()
        vm = _Vm(
            build.server_uuid,
            build.placed.node,
            build.vcpus,
            build.memory_mib,
            build.disk_gib,
        )
        with self._hypervisor.lock:
            self._hypervisor.vms.setdefault(self._vmid, vm)
        return {"node": build.placed.node, "vmid": self._vmid}

    def resize_disk(self, build: Build) -> Detail:
        """The size was remembered at create."""
        return {"gib": build.disk_gib}

    def find(self) -> Detail:
        """Whose the id is."""
        if self.foreign:
            raise HypervisorError(
                Category.STORAGE_CONFLICT, f"VM {self._vmid} is another server's."
            )
        return {"absent": self.absent}

    def start(self) -> Detail:
        """Mark it running."""
        return self._power(PowerState.RUNNING)

    def stop(self, graceful_seconds: int) -> Detail:
        """Mark it off."""
        return self._power(PowerState.SHUTDOWN)

    def reboot(self, graceful_seconds: int) -> Detail:
        """It runs again."""
        return self._power(PowerState.RUNNING)

    def power_state(self) -> PowerState:
        """What it was marked as."""
        vm = self._vm
        return PowerState.NOSTATE if vm is None else vm.power

    def remove(self) -> Removal:
        """Forget it."""
        self.find()
        with self._hypervisor.lock:
            vm = self._hypervisor.vms.pop(self._vmid, None)
        return Removal(True, (f"VM {self._vmid}",) if vm else ())

    def remove_config_drive(self) -> Removal:
        """There is none."""
        return Removal(True)

    def let_go_of_config_drive(self) -> Removal:
        """There is none."""
        return Removal(True)

    def mark(self, smbios_uuid: str | None) -> Detail:
        """Remember the owner of a VM that has none."""
        vm = self._vm
        if vm is None or vm.server_uuid not in ("", self._work.command.server_uuid):
            raise HypervisorError(
                Category.STORAGE_CONFLICT, f"VM {self._vmid} is not there, or somebody's."
            )
        vm.server_uuid = self._work.command.server_uuid
        return {}

    def unmark(self) -> Detail:
        """Let it belong to nobody."""
        vm = self._vm
        if vm is not None and not self.foreign:
            vm.server_uuid = ""
        return {}

    def marked(self) -> bool:
        """Whether it is the server's."""
        return not self.absent and not self.foreign

    def _power(self, state: PowerState) -> Mapping[str, str]:
        vm = self._vm
        if vm is None:
            raise HypervisorError(Category.CONFIGURATION, f"There is no VM {self._vmid}.")
        vm.power = state
        return {"power_state": state.name}
