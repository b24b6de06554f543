"""Creates a build's VM: choose the way to its root disk, clone or create, then configure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.messages.commands import Build, Template
from common.messages.reports import Category
from compute.hypervisor.port import Detail, HypervisorError
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster.vmid import Config, Vm
from compute.hypervisor.proxmox.observe.snapshot import Storage
from compute.hypervisor.proxmox.vm import firmware, host_checks
from compute.hypervisor.proxmox.vm.templates import TakenError, Templates, unusable
from compute.hypervisor.proxmox.vmconfig import disks, guest, hardware, marks
from compute.hypervisor.proxmox.vmconfig.disks import Way


class Creation:
    """The creation of one build's VM."""

    def __init__(self, vm: Vm, templates: Templates, see: Callable[[], Config | None]) -> None:
        """``see`` returns the VM's configuration, if it is ours and not locked."""
        self._vm, self._shared, self._work = vm, vm.shared, vm.work
        self._templates, self._see = templates, see
        self.way = Way.IMPORT_FROM
        self.config_drive: str | None = None
        """The volume of the config drive, once it is uploaded."""

    def ensure_image(self, build: Build) -> Detail:
        """Ensure the template if the storage can clone it; else import the image.

        An image whose file was replaced since it was listed is listed again, once. A server whose
        root disk is a volume needs none.
        """
        if build.boots_from_volume:
            self.way = Way.VOLUME
            return {"way": self.way.value}
        try:
            return self._ensure_image(build)
        except host_checks.ReplacedError as replaced:
            self._work.report(listed_anew=replaced.message)
            host_checks.relist(self._shared, build, self._vm.node)
        return self._ensure_image(build)

    def _ensure_image(self, build: Build) -> Detail:
        image = host_checks.image(self._shared, build)
        storage = self._storage(build)
        self.way = disks.way(build, storage.name, storage.kind, linked=self._links(storage))
        detail: dict[str, Any] = {"image": image.name, "volume": image.volid}
        if self.way in disks.CLONES and build.template is not None:
            detail["template"] = build.template.vmid
            try:
                detail["made"] = self._templates.ensure(self._work, build, image, build.template)
            except TakenError as taken:
                if image.template_only:
                    raise HypervisorError(Category.NODE_UNHEALTHY, f"{taken}.") from taken
                detail["template_taken"] = str(taken)
                self.way = Way.IMPORT_FROM
        if self.way not in disks.CLONES:
            host_checks.image_is_as_listed(self._shared, self._vm.node, image)
        return {**detail, "way": self.way.value}

    def make(self, build: Build, storage: Storage) -> None:
        """Clone or create it, and see the VM there."""
        try:
            self._make(build, storage)
        except TakenError as locked:
            self._work.report(template_taken=str(locked))
            self._import_instead(build)
            self._make(build, storage)
        except ApiError as error:
            if self.way not in disks.CLONES or build.template is None:
                raise
            if not error.no_config and not self._templates.is_lost(build, error):
                raise
            # The template is not where it was last seen: look once more, and make it again if it
            # was removed; if its node is down, import the image.
            self._templates.drop(build.template)
            self._work.report(template=f"{build.template.vmid} was not to be had: {error.message}")
            self._work.report(**self.ensure_image(build))
            self._make(build, storage)

    def _import_instead(self, build: Build) -> None:
        """Have the image imported, as its template can't be used."""
        image = host_checks.image(self._shared, build)
        self.way = Way.IMPORT_FROM
        host_checks.image_is_as_listed(self._shared, self._vm.node, image)

    def _make(self, build: Build, storage: Storage) -> None:
        call = self._clone if self.way in disks.CLONES else self._create
        key = self._shared.storage_key(self._vm.node, storage.name)
        volid = build.image.volid if build.image is not None else ""
        try:
            with self._shared.storage_queue.slot(self._work, key, f"{self.way} {volid}"):
                self._vm.converge(
                    lambda: self._see() is not None,
                    lambda: call(build, storage),
                    look_first=False,
                )
        except ApiError as error:
            # The owner decides: our VM is continued with, another's is never adopted.
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
        if self.way is Way.FULL_CLONE:
            values |= {"full": 1, "storage": storage.name}
        node = self._templates.node_of(template)
        if node != self._vm.node:
            values["target"] = self._vm.node
        path = f"nodes/{node}/qemu/{template.vmid}/clone"
        try:
            return self._shared.client.post(path, **values)
        except ApiError as error:
            locked = self._templates.locked(self._work, build, template) if error.locked else None
            if locked is None:
                raise
            if build.image is not None and not build.image.template_only:
                raise unusable(template, locked) from error
            raise locked from error

    def _create(self, build: Build, storage: Storage) -> Any:
        values = self._parameters(build) | guest.disks(guest.of(build), storage.name, storage.kind)
        values["vmid"] = self._vm.vmid
        if not build.boots_from_volume:
            image = host_checks.image(self._shared, build)
            made = disks.made_of(image, storage.name, storage.kind, build.disk_gib)
            has = guest.of(build)
            values[disks.root_slot_of(has)] = disks.bounded(made, guest.disk_limits(has))
        return self._shared.client.post(f"nodes/{self._vm.node}/qemu", **values)

    def configure(self, build: Build, seen: Config, storage: Storage) -> None:
        """Configure the VM, bound by digest to the configuration that was proven ours."""
        wanted = guest.disks(guest.of(build), storage.name, storage.kind)
        fresh = [] if firmware.ensure(self._vm, wanted, storage) else [seen]

        def configure() -> Any:
            config = fresh.pop() if fresh else self._vm.fence()
            values = self._parameters(build) | _root_as_asked(build, config)
            path, digest = f"{self._vm.path}/config", config["digest"]
            return self._shared.client.post(path, digest=digest, **values)

        self._vm.converge(
            lambda: not marks.is_building(self._vm.look() or {}), configure, look_first=False
        )

    def _parameters(self, build: Build) -> dict[str, Any]:
        cpu_type = self._shared.settings.cpu_type
        return hardware.parameters(build, self._vm.mark, cpu_type, self.config_drive)

    def _links(self, storage: Storage) -> bool:
        return disks.links(self._shared.settings.linked_clones, shared=storage.shared)

    def _storage(self, build: Build) -> Storage:
        return host_checks.storage(self._shared, self._vm.node, build.storage)


def _root_as_asked(build: Build, config: Config) -> dict[str, str]:
    """Return the parameters that move a clone's root disk from its template's slot to the bus
    that the image asks for, with the flavor's bounds."""
    if build.boots_from_volume:
        return {}
    has = guest.of(build)
    return disks.root_as(config, disks.root_slot_of(has), guest.disk_limits(has))
