"""The move of a VM between two nodes: once asked for, only looked at. Implements ``port.Moving``.

A migration holds the VM from beginning to end, and is never stopped: that would leave a lock
which only root can clear, a process and copies. The VM's configuration, which exists on exactly
one of the two nodes, shows whether the migration was done.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from common.failures import Verdict
from common.messages.commands import Move
from common.messages.reports import Category
from compute.hypervisor.port import Detail, HypervisorError, Removal
from compute.hypervisor.proxmox.api import privileges, upid
from compute.hypervisor.proxmox.api.calls import Purpose
from compute.hypervisor.proxmox.api.errors import ApiError, category_of
from compute.hypervisor.proxmox.api.tasks import Ended
from compute.hypervisor.proxmox.cluster import quorum
from compute.hypervisor.proxmox.cluster.vmid import (
    LOCK_SECONDS,
    SETTLE_SECONDS,
    Config,
    Vm,
)
from compute.hypervisor.proxmox.vm import cds, config_drive, copies
from compute.hypervisor.proxmox.vmconfig import disks, ejected, hardware, movable
from compute.hypervisor.proxmox.vmconfig.movable import Situation

#: the HA manager looks every ten seconds
MANAGER_LOOK_SECONDS = 2.0
#: a cause in a migration's log
_CAUSE = re.compile(
    r"(can't migrate (?:local disk )?'.*|(?<!TASK )ERROR: "
    r"(?!migration (?:aborted|finished)|Problem).*)"
)


class ProxmoxMoving:
    """One move of one server's VM; ``see`` returns its configuration, if it is ours, once it
    carries no lock, and follows it to its node."""

    def __init__(self, vm: Vm, move: Move, see: Callable[[], Config | None]) -> None:
        self._vm, self._move, self._see = vm, move, see
        self._node = ""
        self._named: frozenset[str] = frozenset()
        """Local volumes that its configuration had named before it moved."""
        self._cds: frozenset[str] = frozenset()
        """CDs on its node's own storage that the target has, too: taken out for the move."""
        self._copied_bytes = 0

    @property
    def node(self) -> str:
        """See ``port.Moving``."""
        return self._node

    @property
    def _source(self) -> str:
        return self._vm.home

    def find(self) -> Detail:
        """See ``port.Moving``."""
        self._require()
        return {"node": self._node, "found": "the server's VM"}

    def check(self) -> Detail:
        """See ``port.Moving``. One call, and one for the volumes of each storage to copy to."""
        if self._node == self._move.target_node:
            return {"moved": True}
        vm = self._vm
        if not vm.shared.node(self._move.target_node).online:
            raise HypervisorError(
                Category.NODE_UNHEALTHY, f"Node {self._move.target_node} is offline."
            )
        quorum.require(vm)
        now = self._situation()
        why = movable.refusal(now, self._move)
        if why is not None:
            raise HypervisorError(
                Category.CONFIGURATION, f"{vm} can't be moved. {why} It was not touched."
            )
        self._cds = now.cds
        copied = movable.copied(now)
        self._named = frozenset(copied)
        self._copied_bytes = disks.bytes_of(now.config, self._named)
        if copied and self._move.target_storage is not None:
            self._require_unmanaged()
        if copied:
            copies.require_none(vm, self._source, self._move.target_node)
        out = ", ".join([now.drive or "", *sorted(now.cds)]).removeprefix(", ")
        return {"to_copy": copied, **({"takes_out": out} if out else {})}

    def _require_unmanaged(self) -> None:
        """Raise HypervisorError if the HA manager would move it: that takes no target storage."""
        if (self._vm.status().get("ha") or {}).get("managed"):
            raise HypervisorError(
                Category.CONFIGURATION,
                f"{self._vm} can't be moved. The HA manager copies its disks only to storage of "
                f"the same name, which node {self._move.target_node} has not got, or is not to "
                "use. It was not touched.",
            )

    def take_drive_out(self) -> Detail:
        """See ``port.Moving``."""
        drive = self._local_drive(self._current())
        if self._node == self._move.target_node or not (drive or self._cds):
            return {"skipped": "it moves along"}
        taken = {"cds": cds.take_out(self._vm, self._cds)} if self._cds else {}
        if drive is None:
            return taken
        self._insert(ejected.EMPTY)
        return {"volume": drive, **taken}

    def put_drive_in(self, image: Callable[[], bytes] | None) -> Detail:
        """See ``port.Moving``."""
        return {**cds.put_in(self._vm), **self._put_config_drive_in(image)}

    def _put_config_drive_in(self, image: Callable[[], bytes] | None) -> Detail:
        if image is None:
            return {"skipped": "it has no config drive"}
        inserted = self._current().get(disks.CONFIG_DRIVE)
        if inserted is None:
            return {"skipped": "somebody removed its CD drive"}
        if not str(inserted).startswith("none"):
            return {"volume": str(inserted).split(",", 1)[0]}
        volid = config_drive.present(self._vm, self._drive_names)
        if volid is None:
            if not self._had_drive():
                return {"skipped": "it has no config drive"}
            volid = config_drive.upload(self._vm, self._move.resource_id, image())
        self._insert(f"{volid},media=cdrom")
        return {"volume": volid}

    def carry_out(self) -> Detail:
        """See ``port.Moving``."""
        if self._node == self._move.target_node:
            return {"moved": True}
        problem: HypervisorError | None = None
        # Until it was looked for: it may be on either node.
        self._node = ""
        try:
            self._await_manager(self._ask())
        except HypervisorError as error:
            problem = _with_cause(error)
        return self._decided(problem)

    def clean_up(self) -> Removal:
        """See ``port.Moving``."""
        config = self._require()
        other = self._source if self._node != self._source else self._move.target_node
        named = self._named | disks.volumes(config, self._vm.vmid)
        return copies.remove(self._vm, other, self._source, named, self._drive_names)

    # --- inner

    def _require(self) -> Config:
        """Find the VM's node. Raises HypervisorError if neither node has the VM."""
        self._node = ""
        config = self._see()
        if config is None:
            raise HypervisorError(Category.VANISHED, "The server has no VM.")
        if self._vm.node not in (self._source, self._move.target_node):
            raise HypervisorError(
                Category.CONFIGURATION, f"{self._vm} was moved there by somebody else."
            )
        self._node = self._vm.node
        return config

    def _situation(self) -> Situation:
        vm, target = self._vm, self._move.target_node
        try:
            with vm.locks_explained():
                found = vm.shared.client.get(f"{vm.path}/migrate", target=target)
        except ApiError as error:
            raise _without_privilege(vm, error) or error from error
        config = self._current()
        kinds = {one.name: one.kind for one in vm.shared.node(self._source).storages.values()}
        drive = self._local_drive(config)
        also_there = cds.also_on(vm, target, found.get("local_disks") or (), drive)
        return Situation(vm.vmid, found, config, kinds, drive, also_there)

    @property
    def _drive_names(self) -> tuple[str, ...]:
        return hardware.config_drive_names(self._vm.vmid, self._move.resource_id)

    def _local_drive(self, config: Config) -> str | None:
        """Return the config drive's volume if it is on a storage of the node's own."""
        volid = movable.drive(config, self._drive_names)
        if volid is None:
            return None
        shared = self._vm.shared.storage_key(self._vm.node, volid.partition(":")[0])[0] is None
        return None if shared else volid

    def _had_drive(self) -> bool:
        """Return whether the other node has its config drive, taken out before; if that node is
        offline, it counts as there."""
        other = self._source if self._node != self._source else self._move.target_node
        return not self._vm.shared.node(other).online or bool(
            copies.drives(self._vm, other, self._drive_names)
        )

    def _current(self) -> Config:
        """Return its configuration without what is pending."""
        found: Config = self._vm.shared.client.get(f"{self._vm.path}/config", current=1)
        return found

    def _insert(self, value: str) -> None:
        """Change the medium, of a running VM too, and see it changed."""

        def done() -> bool:
            seen = str(self._current().get(disks.CONFIG_DRIVE, ejected.EMPTY))
            return seen.split(",", 1)[0] == value.split(",", 1)[0]

        def call() -> Any:
            config = self._vm.fence()
            values = {disks.CONFIG_DRIVE: value, "digest": config["digest"]}
            return self._vm.shared.client.post(f"{self._vm.path}/config", **values)

        self._vm.converge(done, call)
        if not done():
            raise HypervisorError(
                Category.UNKNOWN_OUTCOME, f"{self._vm} did not change its CD to {value}."
            )

    def _ask(self) -> Ended | None:
        """Ask for the migration once and wait for its task; only a lock lets it be asked again."""
        for attempt in range(len(LOCK_SECONDS) + 1):
            self._vm.await_clean_up()
            self._vm.fence()
            try:
                return self._migrate()
            except ApiError as error:
                # It was refused before it began.
                self._vm.explain_lock(error)
                stuck = error.remedy is not None or attempt == len(LOCK_SECONDS)
                if error.category is not Category.LOCK or stuck:
                    raise
                self._vm.work.pause(self._vm.lock_pause(error, attempt))
        return None

    def _migrate(self) -> Ended:
        vm, move = self._vm, self._move
        values: dict[str, Any] = {"target": move.target_node}
        if move.live:
            values["online"] = 1
            if self._named:
                values["with-local-disks"] = 1
        if move.target_storage is not None and self._named:
            values["targetstorage"] = move.target_storage
        task = str(vm.shared.client.post(f"{vm.path}/migrate", **values))
        vm.work.report(upid=task)
        return vm.shared.tasks.wait(vm.work, task, self._copied_bytes)

    def _await_manager(self, ended: Ended | None) -> None:
        """Wait for the HA manager, where the task was only the request to it.

        Raises HypervisorError when it gives up, or past the deadline.
        """
        task = None if ended is None else upid.parse(ended.upid)
        if task is None or task.kind != "hamigrate":
            return
        self._vm.work.report(waits="the HA manager moves it")
        while self._vm.look() is not None:
            status = self._vm.status()
            if (status.get("ha") or {}).get("state") == "error":
                raise HypervisorError(
                    Category.CREATION_FAILED, f"The HA manager could not move {self._vm}."
                )
            self._vm.work.pause(MANAGER_LOOK_SECONDS)

    def _decided(self, problem: HypervisorError | None) -> Detail:
        """See on which node it is, and raise unless that is the target."""
        unknown = problem is not None and problem.category is Category.UNKNOWN_OUTCOME
        for seconds in SETTLE_SECONDS if unknown else (0.0,):
            self._vm.work.pause(seconds)
            self._require()
            if self._node == self._move.target_node:
                # Some work after the move may have failed; the rest is done from here.
                return {} if problem is None else {"problem": problem.message}
        raise problem or HypervisorError(
            Category.UNKNOWN_OUTCOME, f"{self._vm} is still there after its migration ended well."
        )


def _with_cause(error: HypervisorError) -> HypervisorError:
    """Return the error with the cause that only the task's log has."""
    causes = [match[1] for line in error.log_tail if (match := _CAUSE.search(line))]
    if not causes or not isinstance(error, ApiError):
        return error
    return HypervisorError(
        category_of(causes[-1]) if error.category is Category.CREATION_FAILED else error.category,
        f"{error.message}: {causes[-1]}",
        upid=error.upid,
        log_tail=error.log_tail,
        left=error.left,
        remedy=error.remedy,
        owner_message=error.owner_message,
    )


def _without_privilege(vm: Vm, error: ApiError) -> HypervisorError | None:
    if error.category is not Category.AUTHORIZATION:
        return None
    needed = privileges.of(Purpose.MOVES)
    return HypervisorError(
        Category.AUTHORIZATION,
        f"{vm} can't be moved: the agent's token lacks VM.Migrate. {error.message}",
        remedy=vm.shared.client.granting(needed),
        verdict=Verdict.FATAL,
    )
