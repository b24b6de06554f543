"""The VM of a server: implements ``port.Machine`` with Proxmox VE's calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.messages.commands import Build, Template
from common.messages.reports import Category
from common.states import PowerState
from compute.hypervisor.port import Detail, HypervisorError, Removal, Work
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster import quorum
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.cluster.vmid import Config, ForeignError, StuckError, Vm
from compute.hypervisor.proxmox.observe.snapshot import Storage
from compute.hypervisor.proxmox.storage import volumes
from compute.hypervisor.proxmox.vm import (
    config_drive,
    firmware,
    half_created,
    host_checks,
    power,
    removal,
)
from compute.hypervisor.proxmox.vm.templates import TakenError, Templates
from compute.hypervisor.proxmox.vmconfig import disks, guest, hardware, marks
from compute.hypervisor.proxmox.vmconfig.disks import Way


class ProxmoxMachine:
    """One VM of one server, in the hands of one operation."""

    def __init__(self, shared: Shared, templates: Templates, work: Work) -> None:
        self._shared, self._templates, self._work = shared, templates, work
        command = work.command
        mark = marks.server_mark(command.server_uuid)
        self._vm = Vm(shared, work, command.placed.vmid, command.placed.node, mark)
        self._absent = False
        self._foreign = False
        self._refused = False
        self._proven = False
        self._stuck: tuple[str, ...] = ()
        #: the id was seen free of config by this very operation, and of volumes on these storages
        self._clear: volumes.Seen | None = None
        self._way = Way.IMPORT_FROM
        self._config_drive: str | None = None
        self._root = ""

    @property
    def absent(self) -> bool:
        """Whether VM and volumes were seen absent at the last look."""
        return self._absent

    @property
    def foreign(self) -> bool:
        """Whether the VMID was seen in the hands of somebody else."""
        return self._foreign

    @property
    def refused(self) -> bool:
        """Whether others had the VMID before this operation made anything there."""
        return self._refused

    @property
    def stuck(self) -> tuple[str, ...]:
        """What has the VMID and only root can remove."""
        return self._stuck

    # --- build

    def check_host(self, build: Build) -> Detail:
        """See ``port.Machine``; what is there already of this server is gone on with."""
        config = self._look_around()
        storage = host_checks.host(self._shared, build, self._vm.node)
        unseen = self._clear.unseen if self._clear is not None else ()
        return {
            "node": build.placed.node,
            "vmid": self._vm.vmid,
            "storage": storage.name,
            "available_gib": storage.available >> 30,
            "found": "nothing" if config is None else "the server's VM",
            **({"unseen": list(unseen)} if unseen else {}),
        }

    def ensure_image(self, build: Build) -> Detail:
        """Have the template where the storage can clone it; else the import volume will do.

        An image whose file was replaced since it was listed is listed anew, once.
        """
        try:
            return self._ensure_image(build)
        except host_checks.ReplacedError as replaced:
            self._work.report(listed_anew=replaced.message)
            host_checks.relist(self._shared, build, self._vm.node)
        return self._ensure_image(build)

    def _ensure_image(self, build: Build) -> Detail:
        image = host_checks.image(self._shared, build)
        storage = self._storage(build)
        self._way = disks.way(build, storage.name, storage.type, linked=self._links(storage))
        detail: dict[str, Any] = {"image": image.name, "volume": image.volid}
        if self._way is not Way.IMPORT_FROM and build.template is not None:
            detail["template"] = build.template.vmid
            try:
                detail["made"] = self._templates.ensure(self._work, build, image, build.template)
            except TakenError as taken:
                detail["template_taken"] = str(taken)
                self._way = Way.IMPORT_FROM
        if self._way is Way.IMPORT_FROM:
            host_checks.image_is_as_listed(self._shared, self._vm.node, image)
        return {**detail, "way": self._way.value}

    def upload_config_drive(self, build: Build, image: Callable[[], bytes]) -> Detail:
        """Upload the ISO under a name of its own; a repeated upload replaces it."""
        iso = image()
        self._config_drive = config_drive.upload(self._vm, build.server_uuid, iso)
        return {"volume": self._config_drive, "bytes": len(iso)}

    def create(self, build: Build) -> Detail:
        """Clone or import, then configure; the marks are there from the first moment."""
        storage = self._storage(build)
        self._absent = False
        config = None if self._clear is not None else self._see()
        if config is None:
            self._have(build, storage)
            config = self._see()
        if config is None:
            raise HypervisorError(
                Category.UNKNOWN_OUTCOME, f"{self._vm} is not there after its task ended well."
            )
        self._root = str(config.get(disks.ROOT_DISK, ""))
        if marks.is_building(config):
            self._configure(build, config, storage)
        return {"node": self._vm.node, "vmid": self._vm.vmid, "way": self._way.value}

    def resize_disk(self, build: Build) -> Detail:
        """Grow the root disk; an image larger than the flavor's disk is left as it is."""
        wanted = build.disk_gib << 30
        present = disks.size_bytes(self._root)
        if present >= wanted:
            return {"bytes": present}
        volumes.grow_root(self._vm, self._storage(build).name, build.disk_gib)
        return {"bytes": wanted, "before": present}

    # --- any operation

    def find(self, *, to_remove: bool = False) -> Detail:
        """Where the VM is; somebody else's is an error, and one that shall go and may not."""
        config = self._see()
        if config is None:
            self._absent = not volumes.of_vm(self._vm)
            return {"node": self._vm.node, "found": "nothing"}
        if to_remove:
            removal.require_unprotected(self._vm, config)
            quorum.require(self._vm)
        return {"node": self._vm.node, "found": "the server's VM", "lock": config.get("lock")}

    def start(self) -> Detail:
        """Run it and see it running."""
        power.start(self._vm, look_first=self._clear is None)
        return {"power_state": PowerState.RUNNING.name}

    def stop(self, graceful_seconds: int) -> Detail:
        """Have it off; a VM that isn't there, or not yet, is off."""
        config = self._vm.look()
        if config is not None and "lock" not in config:
            power.stop(self._vm, graceful_seconds)
        return {"power_state": PowerState.SHUTDOWN.name}

    def reboot(self, graceful_seconds: int) -> Detail:
        """Restart it."""
        return {"reboot": power.reboot(self._vm, graceful_seconds)}

    def power_state(self) -> PowerState:
        """What status/current says, once the VM was seen to be the server's."""
        if not self._proven:
            return PowerState.NOSTATE
        return PowerState.RUNNING if self._vm.running() else PowerState.SHUTDOWN

    def remove(self) -> Removal:
        """Make VM and disks absent."""
        if self._foreign:
            # Our create met somebody else's VM: there is nothing of ours.
            return Removal(True)
        try:
            removal_ = removal.remove(self._vm, self._clear)
        except StuckError as error:
            half_created.name_disks(self._vm, error)
            self._stuck = error.left
            raise
        self._absent = removal_.gone
        return removal_

    def remove_config_drive(self) -> Removal:
        """Delete the ISO by its own name, on every storage where this driver may have put it."""
        return config_drive.remove(self._vm, self._work.command.server_uuid)

    def let_go_of_config_drive(self) -> Removal:
        """Delete the ISO of a server whose VM this is not, or no more."""
        return config_drive.let_go(self._vm, self._work.command.server_uuid)

    # --- inner

    def _look_around(self) -> Config | None:
        """First of all: a host that is refused afterwards is known to hold nothing."""
        try:
            config = self._see(recent=True)
        except StuckError:
            # An earlier run may have begun it; its drive can go.
            config_drive.remove(self._vm, self._work.command.server_uuid)
            raise
        except ApiError as error:
            if error.category is Category.NODE_UNHEALTHY:
                # The node is silent; the cluster's list, which survives its nodes, is not.
                self._absent = self._shared.listed(self._vm.vmid) is None
            raise
        if config is None:
            seen = volumes.everywhere(self._vm)
            strays = volumes.strays(self._vm, seen)
            if strays is not None:
                self._foreign = True
                # What an earlier run of ours left is no proof that others had it first.
                self._refused = not self._may_be_ours(seen.volumes)
                raise strays
            self._absent, self._clear = True, seen
        return config

    def _may_be_ours(self, found: list[volumes.Volume]) -> bool:
        """Whether an earlier run of this operation may have made one of these."""
        try:
            return bool(volumes.made_by_us(self._vm, found))
        except ApiError:
            return True

    def _see(self, *, recent: bool = False) -> Config | None:
        """The configuration, if it is ours and no lock is held."""
        self._proven = False
        try:
            config = self._vm.locate(recent=recent)
            ours = None if config is None else self._vm.ours(config)
        except ForeignError:
            self._foreign, self._refused, self._stuck = True, True, ()
            raise
        except StuckError as error:
            half_created.name_disks(self._vm, error)
            self._foreign, self._stuck = False, error.left
            raise
        except HypervisorError as error:
            # Whose it is was looked at before its lock.
            self._proven = error.category is Category.LOCK
            raise
        self._proven = ours is not None
        return ours

    def _have(self, build: Build, storage: Storage) -> None:
        try:
            self._make(build, storage)
        except ApiError as error:
            if self._way is Way.IMPORT_FROM or build.template is None:
                raise
            if not error.no_config and not self._templates.is_lost(build, error):
                raise
            # It is no longer where it was last seen: looked for there, once, and made anew if
            # somebody removed it; without its node there is another way.
            self._templates.forget(build.template)
            self._work.report(template=f"{build.template.vmid} was not to be had: {error.message}")
            self._work.report(**self.ensure_image(build))
            self._make(build, storage)

    def _make(self, build: Build, storage: Storage) -> None:
        call = self._clone if self._way is not Way.IMPORT_FROM else self._import
        key = self._shared.storage_key(self._vm.node, storage.name)
        volid = build.image.volid if build.image is not None else ""
        try:
            with self._shared.storage_queue.slot(self._work, key, f"{self._way} {volid}"):
                self._vm.converge(
                    lambda: self._see() is not None,
                    lambda: call(build, storage),
                    look_first=False,
                )
        except ApiError as error:
            # Whose it is decides: ours is gone on with, another's is never adopted.
            if not error.id_taken or self._see() is None:
                raise

    def _clone(self, build: Build, storage: Storage) -> Any:
        template: Template = build.template  # type: ignore[assignment]  # the way says so
        description = self._vm.mark.description(marks.BUILDING)
        values: dict[str, Any] = {
            "newid": self._vm.vmid,
            "name": hardware.vm_name(build),
            "description": description,
        }
        if self._way is Way.FULL_CLONE:
            values |= {"full": 1, "storage": storage.name}
        node = self._templates.node_of(template)
        if node != self._vm.node:
            values["target"] = self._vm.node
        path = f"nodes/{node}/qemu/{template.vmid}/clone"
        try:
            return self._shared.client.post(path, **values)
        except ApiError as error:
            locked = self._templates.locked(self._work, build, template) if error.locked else None
            if locked is not None:
                raise locked from error
            raise

    def _import(self, build: Build, storage: Storage) -> Any:
        image = host_checks.image(self._shared, build)
        values = self._parameters(build) | guest.disks(guest.of(build), storage.name, storage.type)
        values["vmid"] = self._vm.vmid
        values[disks.ROOT_DISK] = disks.imported(storage.name, storage.type, image.volid)
        return self._shared.client.post(f"nodes/{self._vm.node}/qemu", **values)

    def _configure(self, build: Build, seen: Config, storage: Storage) -> None:
        """Bound to the configuration that was seen to be ours: another one is refused there."""
        wanted = guest.disks(guest.of(build), storage.name, storage.type)
        fresh = [] if firmware.ensure(self._vm, wanted, storage) else [seen]

        def configure() -> Any:
            digest = (fresh.pop() if fresh else self._vm.fence())["digest"]
            values = self._parameters(build)
            return self._shared.client.post(f"{self._vm.path}/config", digest=digest, **values)

        self._vm.converge(
            lambda: not marks.is_building(self._vm.look() or {}), configure, look_first=False
        )

    def _parameters(self, build: Build) -> dict[str, Any]:
        cpu_type = self._shared.settings.cpu_type
        return hardware.parameters(build, self._vm.mark, cpu_type, self._config_drive)

    def _links(self, storage: Storage) -> bool:
        return disks.links(self._shared.settings.linked_clones, shared=storage.shared)

    def _storage(self, build: Build) -> Storage:
        return host_checks.storage(self._shared, self._vm.node, build.storage)
