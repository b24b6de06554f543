"""Cached templates: one per image and (node or shared storage), made by the first that needs it.

Its VMID was reserved by the conductor. In this process one thread makes it while the others wait;
another process has taken the VMID and is waited for as well. A template is never made again while
there is one: if it is broken, the build fails or avoids it. It is removed when its image is gone
and no clone depends on it (``retire``).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from common.failures import Verdict
from common.messages.commands import Build, Image, Template
from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError, Removal, Work
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.cluster.vmid import Config, ForeignError, Vm
from compute.hypervisor.proxmox.storage import volumes
from compute.hypervisor.proxmox.vm import half_created, host_checks, removal
from compute.hypervisor.proxmox.vmconfig import disks, hardware
from compute.hypervisor.proxmox.vmconfig.marks import epoch_lines, lines, template_mark

_CHECK_SECONDS = 0.5
#: the line of a template's description with the file it was made of
SOURCE = "micronova: source="
_CHANGED = ", changed "


class TakenError(Exception):
    """No template is available here: the build imports the image."""


def unusable(template: Template, error: HypervisorError) -> TakenError:
    """Return that a template can't be used, why, and what the operator can do about it."""
    mend = f" ({error.remedy})" if error.remedy else ""
    return TakenError(f"template {template.vmid}: {error.message}{mend}")


@dataclass(frozen=True)
class _Ready:
    """A template that was seen ready."""

    key: str
    node: str


class Templates:
    """The templates of one cluster: which are ready, and which are being made."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._lock = threading.Lock()
        self._makers: dict[int, threading.Lock] = {}
        self._ready: dict[int, _Ready] = {}

    def node_of(self, template: Template) -> str:
        """Return where it was last seen ready: somebody may have moved it."""
        ready = self._ready.get(template.vmid)
        return template.node if ready is None else ready.node

    def is_lost(self, build: Build, error: ApiError) -> bool:
        """Return whether an error is about the template's node, not the build's own."""
        template = build.template
        if template is None or self.node_of(template) == build.placed.node:
            return False
        return (
            error.category is Category.NODE_UNHEALTHY
            and error.verdict is not Verdict.OTHER_CLUSTER
        )

    def drop(self, template: Template) -> None:
        """Drop a template that was missing when it was needed."""
        self._ready.pop(template.vmid, None)

    def ensure(self, work: Work, build: Build, image: Image, template: Template) -> bool:
        """Ensure the template; return whether it was made here and now.

        Raises TakenError, or HypervisorError when it can't be made.
        """
        source = self._source(build, image)
        self._require_node(template)
        if self._is_ready(template, image, source):
            return False
        maker = self._maker(template.vmid)
        while not maker.acquire(timeout=_CHECK_SECONDS):
            work.check()
        try:
            if self._is_ready(template, image, source):
                return False
            mark = template_mark(image.id, build.cloud, epoch_lines(build, template.vmid))
            vm = Vm(self._shared, work, template.vmid, template.node, mark)
            made = self._have(vm, image, template, source)
            self._require_reach(vm, template)
            self._ready[template.vmid] = _Ready(_key(image, source), vm.node)
            return made
        except HypervisorError as error:
            if self._is_unusable(build, image, template, error):
                raise unusable(template, error) from error
            raise
        finally:
            maker.release()

    def _is_unusable(
        self, build: Build, image: Image, template: Template, error: HypervisorError
    ) -> bool:
        """Return whether the image can be used without the template that caused an error."""
        if error.category is Category.TEMPLATE_LOCKED:
            return not image.template_only
        if not isinstance(error, ApiError):
            return False
        return self.is_lost(build, error) or (error.lost and template.node != build.placed.node)

    def retire(self, work: Work, node: str, vmid: int, image_id: str, cloud: str) -> Removal:
        """Remove a template that no image needs, if it is ours and no clone depends on it."""
        self._ready.pop(vmid, None)
        vm = Vm(self._shared, work, vmid, node, template_mark(image_id, cloud))
        clones = volumes.linked_to(vm)
        if clones:
            return Removal(False, left=tuple(f"volume {volid} hangs on {vm}" for volid in clones))
        return removal.remove(vm)

    def locked(self, work: Work, build: Build, template: Template) -> HypervisorError | None:
        """Return the error to end with when a template to be cloned is locked for good.

        None if a running task held the lock: that one was waited for.
        """
        mark = template_mark(build.image.id if build.image else "", build.cloud)
        vm = Vm(self._shared, work, template.vmid, self.node_of(template), mark)
        try:
            vm.unlocked(vm.look())
        except HypervisorError as error:
            return _template_error(vm, error)
        return None

    def _is_ready(self, template: Template, image: Image, source: str) -> bool:
        """Return whether it was seen ready here, and the last snapshot doesn't contradict."""
        listed = self._shared.snapshot.vms.get(template.vmid)
        named = hardware.template_name(image.id)
        if listed is not None and listed.name and not (listed.template and listed.name == named):
            self._ready.pop(template.vmid, None)
        ready = self._ready.get(template.vmid)
        return ready is not None and ready.key == _key(image, source)

    def _require_node(self, template: Template) -> None:
        name = self.node_of(template)
        node = self._shared.snapshot.nodes.get(name)
        if node is None or not node.online:
            raise TakenError(f"node {name} of template {template.vmid} is offline")

    def _require_reach(self, vm: Vm, template: Template) -> None:
        """Raise TakenError if somebody moved it, and its disk with it."""
        storage = self._shared.snapshot.storage(vm.node, template.storage)
        if vm.node != template.node and not (storage is not None and storage.shared):
            raise TakenError(f"template {template.vmid} is on {vm.node} now")

    def _source(self, build: Build, image: Image) -> str:
        """Return the line with the image's present file; empty when that isn't known here."""
        node = self._shared.snapshot.nodes.get(build.placed.node)
        for known in node.images if node is not None else ():
            if known.volid == image.volid:
                source = f"{SOURCE}{known.volid} of {known.size_bytes} bytes"
                storage = self._shared.snapshot.storage(build.placed.node, known.storage)
                if known.created_at is None or storage is None or not storage.shared:
                    return source  # the nodes' copies may be of different times
                return f"{source}{_CHANGED}{known.created_at.isoformat()}"
        return ""

    def _maker(self, vmid: int) -> threading.Lock:
        with self._lock:
            return self._makers.setdefault(vmid, threading.Lock())

    def _have(self, vm: Vm, image: Image, template: Template, source: str) -> bool:
        config = self._finished(vm)
        if config is not None:
            _require_same_file(vm, config, source)
            if config.get("template"):
                return False
        if config is None:
            if image.template_only:
                raise _gone(vm, image)
            host_checks.image_is_as_listed(self._shared, vm.node, image)
            free_remains(vm)
        ours = config is None and self._create(vm, image, template, source)
        try:
            host_checks.fits(image, disks.root_bytes(vm.look() or {}), 0)
            convert(vm, look_first=not ours)
        except HypervisorError:
            if ours:
                self._unmake(vm)
            raise
        return ours

    def _finished(self, vm: Vm) -> Config | None:
        """Return the configuration there, after waiting for the task that creates it."""
        try:
            config = vm.locate(recent=True)
            return None if config is None else vm.ours(config)
        except ForeignError as error:
            raise TakenError(error.message) from error
        except HypervisorError as error:
            raise _template_error(vm, error) from error

    def _create(self, vm: Vm, image: Image, template: Template, source: str) -> bool:
        """Import the image; return whether this call did it."""
        key = self._shared.storage_key(vm.node, template.storage)
        asked = values(vm, image, template, source)
        try:
            with self._shared.storage_queue.slot(vm.work, key, f"import {image.volid}"):
                done = vm.converge(
                    lambda: self._finished(vm) is not None,
                    lambda: self._shared.client.post(f"nodes/{vm.node}/qemu", **asked),
                    look_first=False,
                )
        except ApiError as error:
            if error.id_taken:
                if self._finished(vm) is not None:
                    return False  # another process was faster
                # Taken by what this node doesn't list yet: not the server's VMID, nor its fault.
                raise TakenError(f"template {vm.vmid}: {error.message}") from error
            self._unmake(vm)
            raise _template_error(vm, error) from error
        return done is not None

    @staticmethod
    def _unmake(vm: Vm) -> None:
        """Remove an unfinished template, so that the next build can make it."""
        try:
            if not _is_template(vm):
                removal.remove(vm)
        except (HypervisorError, TakenError) as error:
            vm.work.report(template_left=f"{vm}: {error}")


def values(vm: Vm, image: Image, template: Template, source: str) -> dict[str, Any]:
    """Return the parameters of the VM that becomes a template, with a disk of the image."""
    seen = vm.shared.snapshot.storage(vm.node, template.storage)
    about = (f"micronova: image={image.name}", *([source] if source else ()))
    return {
        "vmid": vm.vmid,
        "name": hardware.template_name(image.id),
        "description": vm.mark.description(*about),
        "tags": hardware.TAG,
        "ostype": "l26",
        "cores": 1,
        "memory": 128,
        "scsihw": "virtio-scsi-single",
        "boot": f"order={disks.ROOT_DISK}",
        disks.ROOT_DISK: disks.imported(template.storage, seen.kind if seen else "", image.volid),
    }


def convert(vm: Vm, *, look_first: bool) -> None:
    """Make a VM a template, unless it is one."""
    vm.converge(
        lambda: _is_template(vm),
        lambda: vm.shared.client.post(f"{vm.path}/template"),
        look_first=look_first,
        fence=True,
    )
    if not _is_template(vm):
        raise HypervisorError(Category.CREATION_FAILED, f"{vm} did not become a template.")


def free_remains(vm: Vm) -> None:
    """Free what an earlier create of ours left whose worker was killed.

    Root has removed the half-created VM, whose disks `qm destroy` doesn't know. The task of what
    another process makes now has not ended.
    """
    remains = volumes.made_by_us(vm, volumes.of_vm(vm))
    if remains and vm.locate() is None:
        for volume in remains:
            volumes.free(vm, volume)


def _gone(vm: Vm, image: Image) -> HypervisorError:
    text = f"Image {image.name}, made of a server, is not there any more: it was {vm}."
    return HypervisorError(Category.IMAGE_NOT_FOUND, text)


def _key(image: Image, source: str) -> str:
    return f"{image.id} {source}"


def _template_error(vm: Vm, error: HypervisorError) -> HypervisorError:
    """Return the error for a locked or forbidden template; a locked one is passed over."""
    if error.category is Category.LOCK and error.remedy is not None:
        half_created.name_disks(vm, error)
        return HypervisorError(
            Category.TEMPLATE_LOCKED, error.message, left=error.left, remedy=error.remedy
        )
    if error.category is Category.AUTHORIZATION:
        error.verdict = Verdict.FATAL
    return error


def _require_same_file(vm: Vm, config: Config, source: str) -> None:
    """Raise TakenError if the image's file was replaced since the template was made."""
    made_of = next((line for line in lines(config) if line.startswith(SOURCE)), "")
    if _CHANGED not in made_of:
        source = source.partition(_CHANGED)[0]  # it was made of a local file
    if source and made_of and made_of != source:
        raise TakenError(f"{vm} was made of another file: {made_of.removeprefix(SOURCE)}")


def _is_template(vm: Vm) -> bool:
    config = vm.look()
    return config is not None and bool(config.get("template"))
