"""A worker whose every request is watched, for tests of the ownership fence."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import proxmoxer
from oslo_config import cfg

from common import clock, ids
from common.messages.commands import Command, Mark, PowerAction, RetireTemplate
from common.resources.states import ResourceType
from compute.hypervisor.only_look import may_only_look
from compute.hypervisor.proxmox import settings as proxmox_settings
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.driver import ProxmoxHypervisor
from compute.hypervisor.proxmox.vmconfig.marks import smbios_uuid
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_destroy,
    a_power,
    configuration,
    proxmox_text,
)
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually

Operation = Callable[[Any], Command]

#: operations that are builds → what is asked
BUILDS: dict[str, dict[str, Any]] = {
    "template": {},
    "import": {"template": None},
    "build": {},
    "full clone": {"storage": "shared"},
    "firmware": {
        "extra_specs": {"hw:tpm_version": "2.0"},
        "image_properties": {"hw_firmware_type": "uefi"},
    },
}


def a_mark(build: Any, *, on: bool, smbios_uuid: str | None = None) -> Mark:
    """Put the owner mark on that VM, or take it off."""
    number = 10**8 + build.operation_id
    where, until = build.placed, clock.after(60)
    return Mark(
        number,
        1,
        ResourceType.SERVER,
        build.resource_id,
        where,
        until,
        on=on,
        smbios_uuid=smbios_uuid,
    )


def a_retirement(build: Any) -> RetireTemplate:
    """Remove the template of that build."""
    where = dataclasses.replace(build.placed, vmid=build.template.vmid)
    subject = f"c1/{build.template.vmid}"
    return RetireTemplate(
        0, 0, ResourceType.TEMPLATE, subject, where, clock.after(60), image_id=build.image.id
    )


class Watched(Client):
    """Calls `before` with every request before it is sent."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__(proxmox_settings.clusters(conf)[0])
        self.writes: list[str] = []
        self.before: Callable[[str, str], None] | None = None
        self.also: dict[str, dict[str, Any]] = {}
        """What root wrote into configurations by hand, by path."""
        self._one = threading.RLock()

    def _request(self, method: str, path: str, values: dict[str, Any]) -> Any:
        with self._one:
            if self.before is not None:
                self.before(method, path)
            if method != "get" and not may_only_look():  # else it is refused, and not sent
                self.writes.append(f"{method.upper()} /{path}")
        answer = super()._request(method, path, values)
        return {**answer, **self.also[path]} if path in self.also else answer


class Stage:
    """A worker whose requests are watched, and an administrator beside it."""

    def __init__(self, simulator: RunningSimulator, folder: Path, **more: str) -> None:
        simulator.control("POST", "reset")
        self.simulator = simulator
        conf = configuration(folder, proxmox_text(simulator, **more))
        self.client = Watched(conf)
        settings = self.client.settings
        self.hypervisor = ProxmoxHypervisor(conf, settings, self.client)
        self.worker = Worker(conf, [self.hypervisor])
        self.worker.start()
        host, port = settings.endpoints[0]
        self.api = proxmoxer.ProxmoxAPI(
            host,
            port=port,
            user=settings.token.user,
            token_name=settings.token.name,
            token_value=settings.token.secret,
            verify_ssl=str(simulator.ca_file),
        )
        self.cluster = Cluster(simulator)
        self.taken: list[int] = []

    def ready(self, operation: str) -> tuple[Any, Command]:
        """The server's build and the command to watch; all that comes before it is done."""
        if operation in BUILDS:
            if operation not in ("template", "import"):
                assert self.worker.run(a_build()).ok, "the template is there from here on"
            build = a_build(**BUILDS[operation])
            return build, build
        build = a_build(template=None)
        if operation == "retire":
            build = a_build()
        elif operation == "mark":
            return self._a_pet()
        assert self.worker.run(build).ok
        if operation == "leftover":
            self._leave_disk(build)
        if operation == "unmark":
            self.taken.append(build.placed.vmid)
        if operation == "retire":
            assert self.worker.run(a_destroy(build)).gone
        if operation == "restart":
            # It waits for a new QEMU, so that a reset doesn't do.
            self.api.nodes("pve1").qemu(build.placed.vmid).config.put(cores=1)
        if operation in ("resume", "restart of a suspended one"):
            assert self.worker.run(a_power(build, PowerAction.SUSPEND)).ok
        if operation == "unpause":
            assert self.worker.run(a_power(build, PowerAction.PAUSE)).ok
        if operation == "start":
            assert self.worker.run(a_power(build, PowerAction.STOP)).ok
        commands: dict[str, Operation] = {
            "stop": lambda one: a_power(one, PowerAction.STOP),
            "start": lambda one: a_power(one, PowerAction.START),
            "pause": lambda one: a_power(one, PowerAction.PAUSE),
            "unpause": lambda one: a_power(one, PowerAction.UNPAUSE),
            "suspend": lambda one: a_power(one, PowerAction.SUSPEND),
            "resume": lambda one: a_power(one, PowerAction.RESUME),
            "restart of a suspended one": lambda one: a_power(one, PowerAction.REBOOT_HARD),
            "reboot": lambda one: a_power(one, PowerAction.REBOOT_SOFT),
            "restart": lambda one: a_power(one, PowerAction.REBOOT_HARD),
            "hard reboot": lambda one: a_power(one, PowerAction.REBOOT_HARD),
            "destroy": a_destroy,
            "leftover": a_destroy,
            "retire": a_retirement,
            "unmark": lambda one: a_mark(one, on=False),
        }
        return build, commands[operation](build)

    def make(self, vmid: int, **config: Any) -> None:
        """Somebody makes a VM of their own."""
        api = self.api.nodes("pve1")
        upid = api.qemu.post(vmid=vmid, memory=64, **config)
        eventually(lambda: api.tasks(upid).status.get()["status"] == "stopped", 30)

    def _a_pet(self) -> tuple[Any, Command]:
        """A VM that shall be adopted."""
        build = a_build()
        self.make(build.placed.vmid, name=build.name, scsi0="local:1")
        config = self.api.nodes("pve1").qemu(build.placed.vmid).config
        config.put(smbios1=f"uuid={ids.new_uuid()}")
        self.taken.append(build.placed.vmid)
        return build, a_mark(build, on=True, smbios_uuid=smbios_uuid(config.get()))

    def _leave_disk(self, build: Any) -> None:
        """A VM is deleted without its disk; the disk's name and creator alone prove it ours."""
        vmid = build.placed.vmid
        assert self.worker.run(a_power(build, PowerAction.STOP)).ok
        self.simulator.fault(leak="L7", vmid=vmid)
        api = self.api.nodes("pve1")
        upid = api.qemu(vmid).delete(purge=1)
        eventually(lambda: api.tasks(upid).status.get()["status"] == "stopped", 30)
        self.taken.append(vmid)

    def take_over(self, vmid: int) -> Any:
        """Somebody else has that VMID from now on, with the name and the tags of ours."""
        self.taken.append(vmid)
        self.api.nodes("pve1").qemu(vmid).config.put(description="mine")
        return self.cluster.vm(vmid)
