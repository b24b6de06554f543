"""Fakes of the port, and builders of commands and facts with defaults."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Iterable
from typing import Any

from common import clock
from common.context import internal
from common.messages.commands import Build, Placed, PlugVolume
from common.messages.facts import HostFacts
from common.messages.reports import Category, Report, Working
from common.resources.local_disks import LocalDisk
from common.resources.states import PowerState, ResourceType
from compute.commands.job import Job, MayStart
from compute.hypervisor.port import Detail, HypervisorError, Removal

SERVER = "6b0f9c5e-55a5-4bb1-8f0c-9e2c3fbb0a01"


def a_build(**more: Any) -> Build:
    values: dict[str, Any] = {
        "operation_id": 1,
        "attempt": 1,
        "resource_type": ResourceType.SERVER,
        "resource_id": SERVER,
        "placed": Placed("pve1", "c1", "pve1", 100_001),
        "deadline": clock.after(60),
        "name": "web",
        "hostname": "web",
        "vcpus": 2,
        "memory_mib": 512,
        "disk_gib": 4,
    }
    return Build(**(values | more))


def some_facts(**more: Any) -> HostFacts:
    values: dict[str, Any] = {
        "host": "pve1",
        "cluster": "c1",
        "node": "pve1",
        "uuid": "5a0c6d52-9f0b-5e9c-9d64-3c7f52dbf001",
        "worker": "w1",
        "availability_zone": "nova",
        "observed_at": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        "vcpus": 8,
        "memory_mib": 16384,
        "disk_gib": 100,
    }
    return HostFacts(**(values | more))


class FakeLedger:
    """Answers what the test says, and records what it was asked."""

    def __init__(self, *, undo: bool = True, starts: Iterable[MayStart | None] = ()) -> None:
        """``starts`` are the answers whether VMs may be started; yes after those."""
        self.undo, self._starts = undo, iter(starts)
        self.asked: list[Working] = []

    def accepts(self, worker: str) -> bool:
        return True

    def is_over(self, worker: str) -> bool:
        return False

    def may_undo(self, worker: str, working: Working) -> bool:
        return self.undo

    def may_start(self, worker: str, working: Working) -> MayStart | None:
        self.asked.append(working)
        return next(self._starts, MayStart.YES)


def a_job(command: Any = None, ledger: FakeLedger | None = None) -> tuple[Job, list[Report]]:
    reports: list[Report] = []
    job = Job(command or a_build(), internal(), reports.append, ledger or FakeLedger())
    return job, reports


class FakeWork:
    """A ``port.Work`` that never ends and waits for nothing."""

    def __init__(self, command: Any = None) -> None:
        self.command = command or a_build()
        self.reported: list[dict[str, Any]] = []
        self.paused: list[float] = []

    def report(self, *, upid: str | None = None, **detail: Any) -> None:
        self.reported.append({"upid": upid, **detail})

    def progress(self, **detail: Any) -> None:
        self.reported.append({"progress": detail})

    def check(self) -> None:
        pass

    def check_time(self) -> None:
        pass

    def pause(self, seconds: float) -> None:
        self.paused.append(seconds)


class FakeMachine:
    """A ``port.Machine`` that remembers what it was asked, and fails in the step `fail`."""

    def __init__(self, fail: str = "", error: Exception | None = None) -> None:
        self.calls: list[str] = []
        self.fail = fail
        self.error = error or HypervisorError(Category.CREATION_FAILED, "it broke", upid="U")
        self.absent = True
        self.foreign = False
        self.refused = False
        self.anothers = False
        self.finished = False
        self.stuck: tuple[str, ...] = ()
        self.state = PowerState.RUNNING
        self.removal = Removal(True, ("VM 100001",))
        self.begun, self.unlocked = threading.Event(), threading.Event()
        self.unlocked.set()

    def _call(self, name: str) -> Detail:
        self.calls.append(name)
        if name == self.fail:
            raise self.error
        return {"did": name}

    def check_host(self, build: Build) -> Detail:
        return self._call("check_host")

    def ensure_image(self, build: Build) -> Detail:
        return self._call("ensure_image")

    def upload_config_drive(self, build: Build, image: Callable[[], bytes]) -> Detail:
        image()
        return self._call("upload_config_drive")

    def create(self, build: Build) -> Detail:
        self.absent = False
        return self._call("create")

    def resize_disk(self, build: Build) -> Detail:
        return self._call("resize_disk")

    def fit_local_disks(self, wanted: tuple[LocalDisk, ...], storage: str | None = None) -> Detail:
        return self._call("fit_local_disks")

    def find(self, *, to_remove: bool = False) -> Detail:
        return self._call("find")

    def start(self) -> Detail:
        return self._call("start")

    def leave_unstarted(self) -> Detail:
        return self._call("leave_unstarted")

    def stop(self, graceful_seconds: int) -> Detail:
        return self._call(f"stop {graceful_seconds}")

    def reboot(self, graceful_seconds: int) -> Detail:
        return self._call(f"reboot {graceful_seconds}")

    def plug_volume(self, command: PlugVolume) -> Detail:
        self.begun.set()
        self.unlocked.wait(60)
        return {**self._call("plug_volume"), "slot": f"scsi{command.slot}"}

    def unplug_volume(self, volid: str) -> Detail:
        return self._call("unplug_volume")

    def power_state(self) -> PowerState:
        return self.state

    def remove(self) -> Removal:
        self._call("remove")
        self.absent = self.removal.gone
        return self.removal

    def let_go_of_config_drive(self) -> Removal:
        self._call("let_go_of_config_drive")
        return Removal(True)

    def remove_config_drive(self) -> Removal:
        self._call("remove_config_drive")
        return Removal(True)
