"""The last assertion of a driver's test: what agents said of their servers is so.

Where there is no record, the outcomes are it. A server whose last outcome is "built" has its VM; a
server that is "gone" has no VM, volume or config drive but those that the failure names as left.
No volume is without its VM, nothing is half made, and nothing is under way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from common.messages.commands import Build, Command, Destroy, Swap

SERVER = "micronova: server="
HALF_MADE = ("create", "clone")


class Reckoning:
    """The commands of a test, their last outcomes, and what the test itself leaves on purpose."""

    def __init__(self) -> None:
        self.workers: list[Any] = []
        """All that were sent commands, each with ``sent`` and ``conductor``."""
        self.lost: list[int] = []
        """VMIDs of built VMs that the test gave to somebody else."""
        self._expected: set[str] = set()

    def expect(self, *things: str) -> None:
        """The test leaves these: ``VM 100803``, or the name of a volume."""
        self._expected |= set(things)

    def begin(self, workers: Iterable[Any]) -> None:
        """A new test: what was before is of no account."""
        self.workers = list(workers)
        self.lost, self._expected = [], set()
        for worker in self.workers:
            worker.sent.clear()

    def differences(self, cluster: Mapping[str, Any]) -> list[str]:
        """What exists and should not, or the other way round; what is expected must exist."""
        found = {
            what: why
            for what, why in (
                *self._of_servers(cluster),
                *_without_owner(cluster),
                *((f"lock {one['name']}", "is held or waited for") for one in cluster["locks"]),
                *((f"task {one['upid']}", "runs") for one in cluster["tasks"]),
            )
            if what not in self._reported()
        }
        missing = [f"{what} was to be left" for what in self._expected - found.keys()]
        return missing + [
            f"{what} {why}" for what, why in found.items() if what not in self._expected
        ]

    # --- inner

    def _last_words(self) -> Iterator[tuple[Command, Any]]:
        """The last outcome of each VMID that a server was given."""
        last: dict[tuple[str, int], tuple[Command, Any]] = {}
        for worker in self.workers:
            for command in worker.sent:
                if not _makes_or_removes(command):
                    continue
                for outcome in worker.conductor.outcomes(command)[-1:]:
                    last[command.resource_id, command.placed.vmid] = (command, outcome)
        yield from last.values()

    def _reported(self) -> set[str]:
        """What the last outcomes themselves say is left: the operator knows."""
        failures = [outcome.failure for _, outcome in self._last_words() if outcome.failure]
        left = [line for failure in failures for line in failure.left]
        things = {_thing(line) for line in left}
        # Said or not, whatever is not clean is not settled: a next command continues there.
        for command, outcome in self._last_words():
            if outcome.failure is not None and not outcome.failure.clean and not outcome.gone:
                things.add(f"VM {command.placed.vmid}")
        return things

    def _of_servers(self, cluster: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        vms = {vm["vmid"]: vm for vm in cluster["vms"]}
        for command, outcome in self._last_words():
            vmid, server = command.placed.vmid, command.resource_id
            vm = vms.get(vmid)
            ours = vm is not None and _says(vm, server)
            built = isinstance(command, Build) and outcome.ok and vmid not in self.lost
            if built and not ours:
                yield f"VM {vmid}", f"of {server} was built and isn't there"
            settled = outcome.gone or (outcome.failure is not None and outcome.failure.clean)
            if settled and ours:
                yield f"VM {vmid}", f"of {server} is there"
            if settled and not ours:
                for volume in cluster["volumes"]:
                    if server in volume["name"]:
                        yield f"volume {volume['volid']}", f"of {server} is there"


def _makes_or_removes(command: Command) -> bool:
    """Whether its outcome says if there is a VM."""
    if isinstance(command, Destroy):
        return not command.drive_only
    return isinstance(command, Build) and not isinstance(command, Swap)


def _says(vm: Mapping[str, Any], server: str) -> bool:
    return f"{SERVER}{server}" in str(vm["config"].get("description", ""))


def _without_owner(cluster: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    vms = {vm["vmid"]: vm for vm in cluster["vms"]}
    for volume in cluster["volumes"]:
        if volume["content"] == "images" and volume["vmid"] not in vms:
            yield f"volume {volume['volid']}", "has no VM"
    for vmid, vm in vms.items():
        if vm["lock"] in HALF_MADE:
            yield f"VM {vmid}", f"is locked ({vm['lock']})"


def _thing(line: str) -> str:
    """What a line of ``left`` is about: ``VM 1 on pve1: locked (create)`` is about ``VM 1``."""
    words = line.split(":", 1)[0].split()
    return " ".join(words[:2]) if line.startswith("VM ") else line.partition(" on ")[0]
