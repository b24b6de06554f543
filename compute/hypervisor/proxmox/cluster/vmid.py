"""The handle of one VMID for one operation: look, fence, act, wait. Writes are never blind."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from common.messages.commands import Build, Swap
from common.messages.reports import Category
from compute.hypervisor.only_look import may_look_past_locks, may_only_look
from compute.hypervisor.port import HypervisorError, Work
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.api.tasks import Ended
from compute.hypervisor.proxmox.api.upid import Upid
from compute.hypervisor.proxmox.cluster import holders, locks
from compute.hypervisor.proxmox.cluster.holders import MAKERS
from compute.hypervisor.proxmox.cluster.shared import Listed, Shared
from compute.hypervisor.proxmox.observe.snapshot import quorate
from compute.hypervisor.proxmox.vmconfig import by_hand, marks, power_states
from compute.hypervisor.proxmox.vmconfig.marks import Mark, Owner

Config = Mapping[str, Any]

#: tries of a write until it is seen done
TRIES = 4
#: looks for a task after an answer was lost
SETTLE_SECONDS = (0.2, 0.5, 1.0, 2.0)
LOCK_SECONDS = (1.0, 3.0, 6.0)
OVERLAP = "give every cloud on this cluster a band of VMIDs of its own (vmid_low, vmid_high)"


class ForeignError(HypervisorError):
    """The VMID belongs to somebody else."""

    anothers = False
    """Whether another resource's marks prove that."""


class Vm:
    """A VM by VMID, wherever in the cluster it is, and the mark that makes it ours."""

    def __init__(self, shared: Shared, work: Work, vmid: int, node: str, mark: Mark) -> None:
        self.shared, self.work = shared, work
        self.vmid, self.node, self.mark = vmid, node, mark
        self.home = node
        """Where the command placed it, wherever it is."""

    @property
    def _makes(self) -> bool:
        """Whether the VM is being built; a swap is a build on the server's own VM."""
        return isinstance(self.work.command, Build) and not isinstance(self.work.command, Swap)

    @property
    def path(self) -> str:
        """The VM's path in the API."""
        return f"nodes/{self.node}/qemu/{self.vmid}"

    def __str__(self) -> str:
        return f"VM {self.vmid} on {self.node}"

    # --- looking

    def look(self) -> Config | None:
        """Return its configuration on this node; None if the node says that it has none."""
        try:
            config: Config = self.shared.client.get(f"{self.path}/config")
        except ApiError as error:
            if error.no_config:
                return None
            raise
        return config

    def locate(self, *, recent: bool = False) -> Config | None:
        """Return its configuration wherever in the cluster it is; None if it is nowhere.

        Absence needs two sources: its node, which must answer unless it was taken out of the
        cluster, and the cluster's list; with ``recent`` the last snapshot's list will do. Raises
        ForeignError for a container's id.
        """
        problem: ApiError | None = None
        try:
            config = self.look()
        except ApiError as error:
            if error.category is not Category.NODE_UNHEALTHY:
                raise
            config, problem = None, error
        if config is not None:
            return config
        if recent and problem is None and self.vmid not in self.shared.snapshot.vms:
            return None
        listed = self.shared.listed(self.vmid)
        if listed is not None and listed.kind != "qemu":
            raise ForeignError(
                Category.STORAGE_CONFLICT if self._makes else Category.FOREIGN,
                f"VMID {self.vmid} is a container on {listed.node}.",
            )
        if listed is not None and listed.node != self.node:
            return self._follow(listed.node)
        if problem is not None:
            self._leave_node(problem, listed)
            return None
        # Listed here, but the node had none: the list lags, or it was just created.
        return None if listed is None else self.look()

    def _leave_node(self, problem: ApiError, listed: Listed | None) -> None:
        """Continue on another node if this one was taken out of the cluster with its folder.

        Then nothing of the VM is left but what shared storages have. Raises the problem that the
        node's answer was, while it is a member or the VM is listed there.
        """
        status = self.shared.client.get("cluster/status")
        members = [str(one["name"]) for one in status if one.get("type") == "node"]
        online = [str(one["name"]) for one in status if one.get("online") and one.get("ip")]
        is_certain = quorate(status) and online and not self.shared.snapshot.missing
        if listed is not None or self.node in members or not is_certain:
            raise problem
        self.work.report(left=self.node)
        self.node = self.home = min(online)

    def _follow(self, node: str) -> Config | None:
        """Continue on the node to which it moved."""
        there = Vm(self.shared, self.work, self.vmid, node, self.mark)
        config = there.look()
        if config is not None:
            self.node = node
            self.work.report(moved_to=node)
        return config

    def status(self) -> Mapping[str, Any]:
        """Return its current status."""
        found: Mapping[str, Any] = self.shared.client.get(f"{self.path}/status/current")
        return found

    def running(self) -> bool:
        """Return whether it runs now, paused or not."""
        return bool(self.status().get("status") == "running")

    # --- the fence

    def ours(self, config: Config) -> Config | None:
        """Return the configuration once it is provably ours and unlocked; None: it is gone.

        Raises ForeignError when the marks name another owner, and what ``unlocked`` raises. A
        half-created VM without marks is waited for: its task writes them, or only root can act.
        """
        settled: Config | None = config
        if marks.owner(config, self.mark) is Owner.UNMARKED:
            settled = self.unlocked(config)
        if settled is None:
            return None
        self._require_ours(settled)
        return self.unlocked(settled)

    def fence(self) -> Config:
        """Return its configuration, proven ours immediately before a write.

        Raises ForeignError if it isn't ours, ApiError if it is absent.
        """
        config: Config = self.shared.client.get(f"{self.path}/config")
        self._require_ours(config)
        return config

    def _require_ours(self, config: Config) -> None:
        if marks.owner(config, self.mark) is Owner.OURS:
            return
        category, remedy = self._whose(config)
        if category is Category.MARK_LOST and may_only_look():
            # One of its two marks is enough to read by, and nothing is written.
            return
        error = ForeignError(
            category,
            f"{self} is not ours: {marks.why_not(config, self.mark)}. It was not touched.",
            left=(f"{self}: not ours, not touched",),
            remedy=remedy,
        )
        error.anothers = marks.is_anothers(config, self.mark)
        raise error

    def _whose(self, config: Config) -> tuple[Category, str | None]:
        """Return what became of a VM that isn't ours by its marks, and the remedy, if it has one.

        A VM that a build finds at its VMID was never the server's.
        """
        wanted = self.mark.smbios_uuid
        if wanted is None or self._makes:
            return Category.STORAGE_CONFLICT, OVERLAP if marks.stranger(config) else None
        if not marks.is_half_marked(config, self.mark):
            return Category.FOREIGN, None
        if marks.smbios_uuid(config) == wanted.lower():
            return Category.MARK_LOST, self._mark_again(config)
        mend = f"qm set {self.vmid} --smbios1 uuid={wanted}"
        return Category.MARK_LOST, f"if it is the server's, as root on {self.node}: {mend}"

    def _mark_again(self, config: Config) -> str | None:
        """Return the command that writes a lost mark again; None: the category's own."""
        if self.mark.line.startswith(marks.SERVER):
            return self.mark_suspended(config)
        return f"as root on {self.node}: {by_hand.describe(self.vmid, self.mark.description())}"

    def mark_suspended(self, config: Config) -> str | None:
        """Return the command that marks a suspended VM, whose lock refuses all but root; None: it
        isn't suspended."""
        if config.get("lock") != power_states.SUSPENDED:
            return None
        text = marks.with_mark({**config, "description": marks.without_owner(config)}, self.mark)
        return f"as root on {self.node}: {by_hand.describe(self.vmid, text, skip_lock=True)}"

    def unlocked(self, config: Config | None) -> Config | None:
        """Return the configuration once it is unlocked, waiting for the live task that locked it.

        A suspended VM counts as unlocked. None if the VM is gone by then. Raises
        HypervisorError (lock) when no live task explains the lock: only root can clear that, and
        the remedy says how.
        """
        looks = 0
        while config is not None and self._is_locked(config):
            live = holders.live(self.shared, self.node, self.vmid, str(config["lock"]))
            if not live:
                # The task may have ended between the two looks, or not begun yet.
                looks += 1
                if self._is_half_made(config):
                    self.work.pause(SETTLE_SECONDS[-1])
                config = self.look()
                if looks > 1 and config is not None and self._is_locked(config):
                    if may_look_past_locks():
                        return config
                    raise self._stuck(config)
                continue
            looks = 0
            for upid in live:
                self._wait_out(upid)
            config = self.look()
        return config

    def _is_locked(self, config: Config) -> bool:
        """Return whether its lock excludes other operations.

        ``suspended`` does so in a running VM without saved memory: a stop, for one, is refused.
        """
        left_over = config.get("lock") == power_states.SUSPENDED and "vmstate" not in config
        return power_states.is_locked(config) or (left_over and self.running())

    def _stuck(self, config: Config) -> HypervisorError:
        half_made = self._is_half_made(config)
        lock = str(config["lock"])
        return locks.stuck(self.shared, self.node, self.vmid, lock, half_made=half_made)

    def _is_half_made(self, config: Config) -> bool:
        """Return whether it was never finished. What has its marks was, and is locked since."""
        finished = marks.owner(config, self.mark) is Owner.OURS and not marks.is_building(config)
        return config.get("lock") in MAKERS and not finished

    def await_tasks(self) -> None:
        """Wait for the tasks under way that are filed under it."""
        for upid in holders.live(self.shared, self.node, self.vmid, ""):
            self._wait_out(upid)

    def _wait_out(self, upid: Upid) -> None:
        """Wait for a task whose result doesn't matter: the look after it does."""
        if not upid.subject:
            # It continues with other VMs once it is done with this one.
            self.work.report(waits_for=upid.text)
            self.work.pause(LOCK_SECONDS[-1])
            return
        self.work.report(upid=upid.text)
        try:
            self.shared.tasks.wait(self.work, upid.text)
        except ApiError:
            # Somebody else's task can't be read; then the wait is by time.
            self.work.pause(LOCK_SECONDS[0])

    # --- acting

    def task(self, call: Callable[[], Any]) -> Ended | None:
        """Send one write and wait for its task, if it has one."""
        with self.locks_explained():
            upid = call()
            if not isinstance(upid, str) or not upid.startswith("UPID:"):
                return None
            self.work.report(upid=upid)
            return self.shared.tasks.wait(self.work, upid)

    @contextlib.contextmanager
    def locks_explained(self) -> Iterator[None]:
        """Have a refusal because of the VM's lock say how that ends, whatever was asked for."""
        try:
            yield
        except ApiError as error:
            self.explain_lock(error)
            raise

    def explain_lock(self, error: ApiError) -> None:
        """Add to a refusal because of the VM's lock how that ends."""
        locks.explain(self.shared, self.node, self.vmid, error)

    def await_clean_up(self) -> None:
        """Wait while the node is known to keep the lock of a restarted VM."""
        seconds = self.shared.restarts.pause_seconds(self.vmid)
        if seconds:
            self.work.report(waits="the node cleans up after the VM's last stop", seconds=seconds)
            self.work.pause(seconds)

    def lock_pause(self, error: ApiError, attempt: int) -> float:
        """Return the seconds to wait before repeating a write that didn't get a lock.

        Mostly the lock is held by the node's clean-up, which takes three times as long as a call
        waits; so the second call after such a pause gets it.
        """
        seconds = LOCK_SECONDS[attempt] * random.uniform(0.7, 1.3)  # noqa: S311
        return max(seconds, self.shared.restarts.call_seconds if error.config_lock else 0.0)

    def converge(
        self,
        done: Callable[[], bool],
        call: Callable[[], Any],
        *,
        look_first: bool = True,
        fence: bool = False,
    ) -> Ended | None:
        """Look; unless it is done, write and wait. None if nothing had to be done.

        After a lost answer or a lock: look again, and only then write again. A failed write
        that is seen done nevertheless is no failure. With ``fence``, ownership is proven before
        each write.
        """
        problem: ApiError | None = None
        for attempt in range(TRIES):
            if (look_first or attempt) and done():
                return None
            self.await_clean_up()
            try:
                if fence:
                    self.fence()
                return self.task(call)
            except ApiError as error:
                problem = error
                if error.storage_lock is not None:
                    key = self.shared.storage_key(self.node, error.storage_lock)
                    self.shared.storage_queue.refused(key)
                if error.category is Category.LOCK and attempt < len(LOCK_SECONDS):
                    if error.remedy is not None:
                        raise  # nothing is running that would release it
                    self.work.pause(self.lock_pause(error, attempt))
                elif error.category is Category.UNKNOWN_OUTCOME:
                    self._await_outcome(done)
                elif (error.is_unknown and self._await_outcome(done)) or done():
                    return None
                else:
                    raise
        if done():
            return None
        raise problem or ApiError(Category.UNKNOWN_OUTCOME, f"{self}: nothing was seen done.")

    def _await_outcome(self, done: Callable[[], bool]) -> bool:
        """Find the task that a call with a lost answer may have started, and wait for its end.

        Return whether the result was seen.
        """
        for seconds in SETTLE_SECONDS:
            self.work.pause(seconds)
            try:
                live = holders.live(self.shared, self.node, self.vmid, "clone")
                for upid in live:
                    self._wait_out(upid)
                seen = done()
                if live or seen:
                    return seen
            except ApiError as error:
                self.work.report(probe=error.message)
        return False
