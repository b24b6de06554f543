"""Cached templates: one per image and (node, storage), made by whoever needs it first.

Its VMID was reserved by the conductor. In this process one thread makes it while the others wait;
another process is noticed by the VMID being taken, and waited for as well.
"""

from __future__ import annotations

import threading

from common.messages import Build, Category, Image, Template
from compute.hypervisor.port import HypervisorError, Work
from compute.hypervisor.proxmox import disks, hardware, removal
from compute.hypervisor.proxmox.cluster import Shared
from compute.hypervisor.proxmox.errors import ApiError
from compute.hypervisor.proxmox.ownership import template_mark
from compute.hypervisor.proxmox.vm import Config, ForeignError, Vm

_CHECK_SECONDS = 0.5


class TakenError(Exception):
    """The template's VMID is somebody else's: the build takes another way."""


class Templates:
    """Of one cluster: which are known to be ready, and who makes which."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._lock = threading.Lock()
        self._makers: dict[int, threading.Lock] = {}
        self._ready: dict[int, str] = {}

    def forget(self, template: Template) -> None:
        """It wasn't there when it was needed."""
        self._ready.pop(template.vmid, None)

    def ensure(self, work: Work, build: Build, image: Image, template: Template) -> bool:
        """Have the template; whether it was made here and now.

        Raises TakenError, or HypervisorError when it can't be made.
        """
        if self._ready.get(template.vmid) == image.id:
            return False
        maker = self._maker(template.vmid)
        while not maker.acquire(timeout=_CHECK_SECONDS):
            work.check()
        try:
            if self._ready.get(template.vmid) == image.id:
                return False
            mark = template_mark(image.id)
            vm = Vm(self._shared, work, template.vmid, template.node, mark)
            made = self._have(vm, image, template)
            self._ready[template.vmid] = image.id
            return made
        finally:
            maker.release()

    def _maker(self, vmid: int) -> threading.Lock:
        with self._lock:
            return self._makers.setdefault(vmid, threading.Lock())

    def _have(self, vm: Vm, image: Image, template: Template) -> bool:
        config = self._settled(vm)
        if config is not None and config.get("template"):
            return False
        try:
            if config is None:
                self._create(vm, image, template)
            vm.converge(
                lambda: _is_template(vm),
                lambda: self._shared.client.post(f"{vm.path}/template"),
                look_first=False,
            )
        except HypervisorError:
            self._unmake(vm)
            raise
        if not _is_template(vm):
            raise HypervisorError(Category.CREATION_FAILED, f"{vm} did not become a template.")
        return True

    def _settled(self, vm: Vm) -> Config | None:
        """What is there, after waiting for whoever is making it."""
        try:
            config = vm.locate(recent=True)
            return None if config is None else vm.ours(config)
        except ForeignError as error:
            raise TakenError(str(vm)) from error
        except HypervisorError as error:
            raise HypervisorError(
                Category.TEMPLATE_LOCKED, error.message, left=error.left, remedy=error.remedy
            ) from error

    def _create(self, vm: Vm, image: Image, template: Template) -> None:
        client, key = self._shared.client, self._shared.storage_key(vm.node, template.storage)
        seen = self._shared.snapshot.storage(vm.node, template.storage)
        values = {
            "vmid": vm.vmid,
            "name": hardware.template_name(image.id),
            "description": vm.mark.description(f"micronova: image={image.name}"),
            "tags": hardware.TAG,
            "ostype": "l26",
            "cores": 1,
            "memory": 128,
            "scsihw": "virtio-scsi-single",
            "boot": f"order={disks.ROOT_DISK}",
            disks.ROOT_DISK: disks.imported(
                template.storage, seen.type if seen else "", image.volid
            ),
        }
        try:
            with self._shared.admission.slot(vm.work, key):
                vm.converge(
                    lambda: self._settled(vm) is not None,
                    lambda: client.post(f"nodes/{vm.node}/qemu", **values),
                    look_first=False,
                )
        except ApiError as error:
            if not error.id_taken:
                raise
            # Another process was faster, or somebody else is there.
            if self._settled(vm) is None:
                raise

    @staticmethod
    def _unmake(vm: Vm) -> None:
        """What was begun must go, so that the next one can make it."""
        try:
            removal.remove(vm, all_volumes_ours=False)
        except (HypervisorError, TakenError) as error:
            vm.work.tell(template_left=f"{vm}: {error}")


def _is_template(vm: Vm) -> bool:
    config = vm.look()
    return config is not None and bool(config.get("template"))
