"""Measure hard reboots in a row, then a delete; JSON: ``python -m benchmarks.restarts``.

It starts a simulated cluster in real time, whose node holds the lock of a VM that was restarted at
once for up to 30 s, as a real one does. For an unchanged VM, and for one with a pending change, it
prints how many seconds each of two hard reboots took and the delete after them, how each was done,
and how many tasks of the node failed in between.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.storage import NODE, Alone, a_build, cluster, configuration
from common import clock
from common.context import internal
from common.messages.commands import Build, Command, Destroy, Power, PowerAction
from common.messages.reports import Outcome, Report
from common.resources.states import ResourceType
from compute.commands import build, destroy, power
from compute.commands.job import Job
from compute.hypervisor.proxmox import settings
from compute.hypervisor.proxmox.driver import ProxmoxHypervisor

DEADLINE_SECONDS = 300
REBOOTS = 2


class Bench:
    """A server on the cluster, and what was done to it."""

    def __init__(self, hypervisor: ProxmoxHypervisor, number: int) -> None:
        self.hypervisor = hypervisor
        self.build = a_build(number)
        self._reports: list[Report] = []

    def run(self, command: Command) -> float:
        """Carry out a command; return the seconds it took. Raises RuntimeError when it failed."""
        job = Job(command, internal(), self._reports.append, Alone())
        began = time.monotonic()
        outcome = self._carry_out(job, command)
        job.journal.close(outcome)
        if not outcome.ok:
            raise RuntimeError(f"{type(command).__name__} failed: {outcome.failure}")
        return round(time.monotonic() - began, 2)

    def _carry_out(self, job: Job, command: Command) -> Outcome:
        machine = self.hypervisor.machine(job)
        if isinstance(command, Build):
            return build.build(job, machine, command)
        if isinstance(command, Destroy):
            return destroy.destroy(job, machine, command, 0)
        assert isinstance(command, Power)
        return power.power(job, machine, command, 0)

    def ways(self) -> list[str]:
        """Return how each reboot was done."""
        steps = [step for report in self._reports for step in report.steps]
        return [str(step.detail["reboot"]) for step in steps if "reboot" in step.detail]


def measure(
    hypervisor: ProxmoxHypervisor, number: int, between: float, *, change: bool
) -> dict[str, Any]:
    """Reboot and delete one server; with ``change`` each reboot has something to apply."""
    bench = Bench(hypervisor, number)
    bench.run(bench.build)
    placed, server = bench.build.placed, bench.build.resource_id
    client, took = hypervisor.shared.client, []
    for turn in range(REBOOTS):
        if change:
            _change(client, placed.vmid, turn)  # waits for the lock itself
        until = clock.after(DEADLINE_SECONDS)
        action = PowerAction.REBOOT_HARD
        took.append(
            bench.run(
                Power(100 + turn, 1, ResourceType.SERVER, server, placed, until, action=action)
            )
        )
        time.sleep(between)
    gone = bench.run(
        Destroy(200, 1, ResourceType.SERVER, server, placed, clock.after(DEADLINE_SECONDS))
    )
    listed = client.get(f"nodes/{NODE}/tasks", source="all", vmid=placed.vmid, limit=500)
    failed = [one["status"] for one in listed if one.get("endtime") and one["status"] != "OK"]
    return {
        "reboot_seconds": took,
        "ways": bench.ways(),
        "delete_seconds": gone,
        "failed_tasks": len(failed),
    }


def _change(client: Any, vmid: int, turn: int) -> None:
    """Change an option that only the next start applies; wait for a busy lock."""
    while True:
        try:
            client.put(f"nodes/{NODE}/qemu/{vmid}/config", cores=1 + (turn + 1) % 2)
            return
        except Exception as error:
            if "got timeout" not in str(error):
                raise


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--between", type=float, default=5.0, help="seconds between two commands, for a clean-up"
    )
    parser.add_argument("--speed", type=float, default=1.0, help="of the simulated cluster")
    given = parser.parse_args(arguments)
    between = given.between
    with cluster(given.speed) as where:
        conf = configuration(where, ())
        hypervisor = ProxmoxHypervisor(conf, settings.clusters(conf)[0])
        try:
            hypervisor.observe()
            result = {
                "unchanged": measure(hypervisor, 0, between, change=False),
                "with_a_pending_change": measure(hypervisor, 1, between, change=True),
            }
        finally:
            hypervisor.close()
    json.dump(result, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
