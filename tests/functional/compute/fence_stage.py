"""A worker whose every request is watched, for tests of the ownership fence."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import proxmoxer
from oslo_config import cfg

from common.messages.commands import Command, PowerAction
from compute.hypervisor.proxmox import settings as proxmox_settings
from compute.hypervisor.proxmox.client import Client
from compute.hypervisor.proxmox.driver import ProxmoxHypervisor
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

Operation = Callable[[Any], Command]


class Watched(Client):
    """Tells of every request before it is sent."""

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
            if method != "get":
                self.writes.append(f"{method.upper()} /{path}")
        answer = super()._request(method, path, values)
        return {**answer, **self.also[path]} if path in self.also else answer


class Stage:
    """A worker whose requests are watched, and an administrator beside it."""

    def __init__(self, simulator: RunningSimulator, folder: Path, **more: str) -> None:
        simulator.control("POST", "reset")
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
        build = a_build() if operation == "build" else a_build(template=None)
        if operation == "build":
            assert self.worker.run(a_build()).ok, "the template is there from here on"
        if operation in ("build", "import"):
            return build, build
        if operation == "template":
            build = a_build()
            return build, build
        assert self.worker.run(build).ok
        if operation == "start":
            assert self.worker.run(a_power(build, PowerAction.STOP)).ok
        commands: dict[str, Operation] = {
            "stop": lambda one: a_power(one, PowerAction.STOP),
            "start": lambda one: a_power(one, PowerAction.START),
            "reboot": lambda one: a_power(one, PowerAction.REBOOT_SOFT),
            "hard reboot": lambda one: a_power(one, PowerAction.REBOOT_HARD),
            "destroy": a_destroy,
        }
        return build, commands[operation](build)

    def take_over(self, vmid: int) -> Any:
        """Somebody else has that VMID from now on, with the name and the tags of ours."""
        self.taken.append(vmid)
        self.api.nodes("pve1").qemu(vmid).config.put(description="mine")
        return self.cluster.vm(vmid)
