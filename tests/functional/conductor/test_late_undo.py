"""A worker wakes late and would undo what is a server in use by then: it asks the ledger first.

Real agents work here, on VMs that are kept in memory; what hangs is their hypervisor's answer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common import config, log, rpc
from common.context import RequestContext
from common.messages.commands import Command
from common.messages.reports import Category, Working
from common.resources.states import PowerState, VmState
from compute import config as compute_config
from compute.commands.job import MayStart
from compute.hypervisor.port import Detail, HypervisorError, Work
from compute.worker.executor import Executor
from conductor.servers.record.reset_state import reset_state
from conductor.sync.reports import Reports
from db import schema
from tests.fixtures.null.driver import NullHypervisor
from tests.fixtures.null.machine import NullMachine
from tests.functional.conductor.harness import World
from tests.functional.waiting import eventually


class HangingMachine(NullMachine):
    """Its start hangs until it is woken, after the deadline."""

    hung: threading.Event
    woken: threading.Event

    def start(self) -> Detail:
        self.hung.set()
        assert self.woken.wait(30)
        raise HypervisorError(Category.TASK_TIMEOUT, "The deadline passed.")


class HangingHypervisor(NullHypervisor):
    """Carries the VMs of another one, and hangs at each start."""

    def __init__(self, beside: NullHypervisor) -> None:
        super().__init__(beside._conf)
        self.vms, self.lock = beside.vms, beside.lock
        self.hung, self.woken = threading.Event(), threading.Event()

    def machine(self, work: Work) -> NullMachine:
        made = HangingMachine(self.vms, self.lock, work)
        made.hung, made.woken = self.hung, self.woken
        return made


class AskedLedger:
    """A worker's way to the conductor's ledger; records what it is asked whether to undo."""

    def __init__(self, reports: Reports, worker: str, asked: list[Working]) -> None:
        self._reports, self._worker, self._asked = reports, worker, asked

    def accepts(self, worker: str) -> bool:
        return True

    def is_over(self, worker: str) -> bool:
        return False

    def may_undo(self, worker: str, working: Working) -> bool:
        self._asked.append(working)
        return self._reports.may_undo(self._worker, working)

    def may_start(self, worker: str, working: Working) -> MayStart:
        may = self._reports.may_start(self._worker, [working])
        return MayStart.YES if working in may else MayStart.NO


class Site:
    """A conductor with the agents of two worker processes."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder)
        self.world.conductor.runner.start()
        conf = config.load([compute_config.register, rpc.register, log.register])
        self.well = NullHypervisor(conf)
        self.hangs = HangingHypervisor(self.well)
        self.asked: list[Working] = []
        self.late = self.agents("w1", self.hangs)
        self.world.compute.answering = self.pass_on(self.late)

    def agents(self, worker: str, hypervisor: NullHypervisor) -> Executor:
        """What one process works with."""
        reports = self.world.conductor.reports

        ledger = AskedLedger(reports, worker, self.asked)
        carried: Any = {"sim1": hypervisor}
        return Executor(carried, lambda one: reports.take([one]), 2, 0, ledger)

    def pass_on(self, executor: Executor) -> Any:
        ctxt = RequestContext(user_id="u", project_id="p")

        def answer(command: Command) -> None:
            executor.accept(ctxt, command)

        return answer

    def a_build_that_hangs(self) -> str:
        """The UUID of a server whose VM is made, but not seen running."""
        [uuid] = self.world.create()
        assert self.hangs.hung.wait(60)
        return uuid

    def carried_by(self, worker: str) -> None:
        """Have the hosts' agents in a process of that name from now on, which hangs nowhere."""
        self.world.beat(worker)
        self.world.compute.answering = self.pass_on(self.agents(worker, self.well))

    def wake(self) -> None:
        """Let the first process go on, until it has nothing to do."""
        self.hangs.woken.set()
        eventually(lambda: not self.late.working())

    def power(self) -> list[PowerState]:
        return [vm.power for vm in self.well.vms.values()]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.hangs.woken.set()
    made.world.close()


@pytest.mark.parametrize("heir", ["w1", "w2"])
def test_a_worker_that_wakes_late_leaves_the_vm_of_an_active_server(site: Site, heir: str) -> None:
    """Another process of its name, or of another one, has finished the build."""
    uuid = site.a_build_that_hangs()
    site.carried_by(heir)
    site.world.make_due()
    site.world.until(uuid, "active")
    site.wake()
    assert site.power() == [PowerState.RUNNING]
    assert [one.attempt for one in site.asked] == [1]
    row = site.world.row(uuid)
    assert (row.vm_state, row.task_state) == ("active", None)
    assert site.world.rows(schema.faults) == []


def test_a_worker_whose_lease_another_one_has_leaves_the_vm_to_that(site: Site) -> None:
    site.a_build_that_hangs()
    site.carried_by("w2")
    sent: list[Command] = []
    site.world.compute.answering = sent.append
    site.world.make_due()
    eventually(lambda: sent)
    site.wake()
    assert site.power() == [PowerState.SHUTDOWN]


def test_a_server_that_was_reset_by_an_administrator_keeps_its_vm(site: Site) -> None:
    uuid = site.a_build_that_hangs()
    admin = RequestContext(user_id="admin", project_id="admin", roles=["admin"], is_admin=True)
    reset_state(site.world.conductor.cloud, admin, uuid, VmState.ACTIVE)
    site.wake()
    assert site.power() == [PowerState.SHUTDOWN]


def test_a_worker_that_still_has_its_lease_undoes_what_it_made(site: Site) -> None:
    site.a_build_that_hangs()
    sent: list[Command] = []
    site.world.compute.answering = sent.append
    site.wake()
    assert site.power() == []
    assert [one.attempt for one in site.asked] == [1, 1]


def test_a_build_that_is_overtaken_by_a_delete_is_undone(site: Site) -> None:
    uuid = site.a_build_that_hangs()
    sent: list[Command] = []
    site.world.compute.answering = sent.append
    site.world.act(uuid, "delete")
    eventually(lambda: sent)
    site.wake()
    assert site.power() == []
