"""Runs audits: when they are due or requested, one conductor at a time, each in two looks.

The looks are taken at different times while the cloud works, so a difference counts only if both
show it; what was healed is looked at a third time.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from shlex import quote
from typing import Any

from common import clock, codec
from common.errors import MicronovaError
from common.failures import backoff_seconds
from common.log import logger
from common.messages.inventory import ClusterInventory
from conductor.audit import losses
from conductor.audit.differences import differences
from conductor.audit.facts import Facts, Finding
from conductor.audit.gather import Gatherer
from conductor.audit.heal import Healer
from conductor.audit.kinds import (
    BY_CONFIG,
    BY_FIREWALL,
    ELSEWHERE,
    KINDS,
    LEFT_BEHIND,
    Verb,
)
from conductor.audit.restored import marked
from conductor.audit.restoring.restorer import Restorer
from conductor.audit.volumes import settled
from conductor.cloud import Cloud
from conductor.engine.periodic import Periodic, Periodics, only_one
from conductor.store import restored
from conductor.store.audits import findings as store
from conductor.store.audits.findings import Kept, NewFinding, Task
from conductor.store.ledger import operations
from conductor.store.networks.segments import OF_OTHERS
from conductor.store.servers import vmids

LOG = logger(__name__)

LEASE = "audit"
#: a requested audit tries again after this while another conductor runs one
ASKED_SECONDS = 1.0
#: how often a conductor looks for requests whose conductor has died
LOOK_SECONDS = 20.0
#: how long an audit waits until what it began to remove is gone
HEAL_SECONDS = 60.0
#: tries of the periodic audit to heal one finding; a requested audit always tries
MAX_HEALS = 5
KEEP_DAYS = 30.0
#: how long the end of the process waits for an audit, which may wait for a lost agent; then its
#: lease runs out, and another conductor starts a new one
STOP_SECONDS = 10.0

_ALLOCATIONS = frozenset(
    {"allocation_without_server", "allocation_unknown", "allocation_differs"}
    | {"server_without_allocation"}
)
Wait = Callable[[float], object]


class Auditor:
    """Runs this conductor's audits."""

    def __init__(
        self,
        cloud: Cloud,
        gatherer: Gatherer,
        healer: Healer,
        restorer: Restorer,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """``look_seconds``: how often it looks for requests whose conductor has died."""
        self._cloud, self._gatherer, self._healer = cloud, gatherer, healer
        self._restorer, self._look_seconds = restorer, look_seconds
        self._options = cloud.conf.conductor
        self._stopped = threading.Event()
        self._asked = False
        interval = self._options.audit_interval_seconds
        self._due_at: float = time.monotonic() + interval
        self._periodic = Periodics("audit", cloud.store, cloud.name)
        first = min(look_seconds, interval)
        self._periodic.add(Periodic(LEASE, interval, self._look_for_work), after=first)

    def start(self) -> None:
        """Begin to check whether an audit is due; the first is after one interval."""
        self._periodic.start()

    def stop(self) -> None:
        """Begin no further audit; a running one ends at its next step."""
        self._stopped.set()
        self._periodic.stop(STOP_SECONDS)

    def ask(self, request_id: str, task: Task = Task.AUDIT) -> int:
        """Request an audit, or a restore; return its id."""
        audit_id = self._cloud.store.run(lambda c: store.request(c, request_id, task))
        self._asked = True
        self._periodic.wake(LEASE)
        return audit_id

    # --- when

    def _look_for_work(self) -> float:
        """Run what is due; return the seconds until the next check."""
        if not self._is_needed():
            return self._until_next()
        failed = False
        try:
            self.turn()
        except Exception:
            LOG.exception("The audit failed; trying again later.")
            failed = True
        return ASKED_SECONDS if self._asked or failed else self._until_next()

    def _is_needed(self) -> bool:
        """Return whether an audit is due or requested, also of a conductor that has died."""
        if self._asked or time.monotonic() >= self._due_at:
            return True
        with self._cloud.store.read() as connection:
            return store.unfinished(connection)

    def _until_next(self) -> float:
        return min(self._look_seconds, max(0.0, self._due_at - time.monotonic()))

    def turn(self) -> None:
        """Run every audit that is requested or due, unless another conductor runs one."""
        interval = self._options.audit_interval_seconds
        if time.monotonic() >= self._due_at:
            self._due_at = time.monotonic() + interval
        with only_one(self._cloud.store, LEASE, self._cloud.name) as ours:
            if not ours:
                self._asked = self._asked and self._cloud.store.run(store.waiting)
                return
            self._asked = False
            while not self._stopped.is_set():
                with self._cloud.store.read() as connection:
                    asked, last = store.unfinished(connection), store.last_begun(connection)
                if not asked and last is not None and last > clock.after(-0.9 * interval):
                    return
                self._run(asked=asked)

    # --- one audit

    def _run(self, *, asked: bool) -> None:
        run = self._cloud.store.run
        audit_id, task = run(lambda c: store.begin(c, self._cloud.name))
        try:
            report = self._report(task, asked=asked)
        except Exception as error:
            text = error.message if isinstance(error, MicronovaError) else type(error).__name__
            failed = {"error": text}
            run(lambda c: store.end(c, audit_id, store.FAILED, failed))
            raise
        run(lambda c: store.end(c, audit_id, store.DONE, report))
        run(lambda c: store.delete_old(c, KEEP_DAYS))
        level = LOG.info if report["clean"] and report["complete"] else LOG.warning
        level("Audit %d: %s", audit_id, codec.dumps(report))

    def _report(self, task: Task, *, asked: bool) -> dict[str, Any]:
        """Return the report of an audit, after what was to be restored."""
        if task is Task.AUDIT:
            return self.audit(asked=asked)
        restore = self._restorer.run(apply=task is Task.APPLY)
        # Its findings are as they are afterwards.
        return {**self.audit(asked=False), "restore": restore}

    def audit(self, *, asked: bool = True) -> dict[str, Any]:
        """Look, look again, heal, look at what was healed; return the report."""
        facts, found = self._look_twice()
        kept = self._cloud.store.run(
            lambda c: store.keep(c, [_new_finding(facts, one) for one in found])
        )
        now = {one.key for one in found}
        tried = self._heal([one for one in kept if (one.kind, one.subject) in now], asked=asked)
        if tried:
            self._await(tried)
            self._cloud.store.run(store.answers)
            facts = self._gatherer.look(facts.read)
            now &= {one.key for one in differences(facts)} | _not_looked_at(facts, kept)
        gone = [
            one.id for one in kept if (one.kind, one.subject) not in now and _looked_at(facts, one)
        ]
        self._cloud.store.run(lambda c: store.healed(c, gone))
        self._next_turn(facts)
        with self._cloud.store.read() as connection:
            left = store.open_ones(connection)
        return _report(facts, left, healed=len(gone))

    def _next_turn(self, facts: Facts) -> None:
        """Put VMs whose description was read behind all others."""
        for cluster, asked in facts.read.items():
            inventory = facts.inventories.get(cluster)
            if inventory is not None and asked:
                self._cloud.store.run(
                    lambda c, name=cluster, of=asked: vmids.were_read(c, name, of)  # type: ignore[misc]
                )

    def _look_twice(self) -> tuple[Facts, list[Finding]]:
        facts = self._gatherer.look()
        if self._was_restored(facts):
            facts = self._gatherer.look(facts.read)
        found = differences(facts)
        if not found:
            return facts, []
        self._stopped.wait(self._options.audit_settle_seconds)
        first = {one.key for one in found}
        facts = self._gatherer.look(facts.read)
        return facts, [one for one in differences(facts) if one.key in first]

    def _was_restored(self, facts: Facts) -> bool:
        """Hold what destroys if a mark proves that the database was restored; whether one did."""
        seen = [one for inventory in facts.inventories.values() for one in marked(inventory)]
        with self._cloud.store.read() as connection:
            found = restored.unknown(connection, seen)
        held = bool(found) and self._cloud.store.run(lambda c: restored.look(c, found))
        if held:
            self._cloud.guard.was_held()
        return held

    def _heal(self, kept: Iterable[Kept], *, asked: bool) -> list[int | None]:
        """Heal what may be healed; return the operations that were begun (None: done at once)."""
        if not self._options.audit_heals:
            return []
        tries: list[int | None] = []
        reaped: set[tuple[str | None, str | None, int | None]] = set()
        # A reap last: while it is open nothing else of its server is healed.
        for finding in sorted(kept, key=lambda one: one.heal == Verb.DESTROY):
            what = (finding.server_uuid, finding.cluster, finding.vmid)
            if finding.heal is None or not (asked or _may_try(finding)) or what in reaped:
                continue
            if finding.evidence.get("came_back"):
                continue  # a person has restored it: only a person may remove it
            if finding.heal == Verb.DESTROY:
                reaped.add(what)  # one removes all that is there
            operation_id = None
            try:
                answer = self._healer.heal(finding, asked=False)
                text, operation_id = answer.text, answer.operation_id
                tries.append(operation_id)
            except MicronovaError as error:
                text = error.message
                LOG.warning("%s %s was not healed: %s", finding.kind, finding.subject, text)
            self._note(finding, text, operation_id)
        return tries

    def _note(self, finding: Kept, text: str, operation_id: int | None) -> None:
        self._cloud.store.run(lambda c: store.tried(c, finding.id, text, operation_id))

    def _await(self, tried: Collection[int | None]) -> None:
        """Wait a limited time until the operations have ended."""
        ids = [one for one in tried if one is not None]
        until = time.monotonic() + HEAL_SECONDS
        while ids and time.monotonic() < until and not self._stopped.is_set():
            with self._cloud.store.read() as connection:
                if not operations.any_open(connection, ids):
                    return
            self._stopped.wait(0.2)


def _may_try(finding: Kept) -> bool:
    """Return whether the periodic audit tries again."""
    if finding.heals == 0 or finding.tried_at is None:
        return True
    rested = finding.tried_at < clock.after(-backoff_seconds(finding.heals))
    return finding.heals < MAX_HEALS and rested


def _new_finding(facts: Facts, finding: Finding) -> NewFinding:
    kind = KINDS[finding.kind]
    verb = kind.verb if finding.proven and kind.verb is not Verb.REPORT else None
    remedy = kind.remedy if finding.proven or kind.doubt is None else kind.doubt
    text = filled(remedy, finding) if remedy else None
    evidence = dict(finding.evidence)
    if kind.destroys:
        evidence["lost"] = losses.lost_data(facts, finding)
        text = f"{losses.sentence(facts, finding)} {text or ''}".rstrip()
    return NewFinding(
        kind=finding.kind,
        subject=finding.subject,
        severity=kind.severity,
        cause=finding.cause,
        remedy=text,
        heal=verb,
        server_uuid=finding.server_uuid,
        cluster=finding.cluster,
        node=finding.node,
        vmid=finding.vmid,
        evidence=evidence,
    )


#: what a remedy names of the evidence
_NAMED = ("volid", "storage", "mac", "bridge", "volume", "snapshot", "option", "vnet")


def filled(remedy: str, finding: Finding) -> str:
    """Return a remedy with its values, each as a shell reads it: others chose names of files."""
    evidence = finding.evidence
    values = {
        "vmid": finding.vmid,
        "node": finding.node,
        "cluster": finding.cluster,
        "server": finding.server_uuid,
        "subject": finding.subject,
        **{name: evidence.get(name) for name in _NAMED},
        "vlan": evidence.get("vlan") or "none",
    }
    words = {name: quote(str(value)) for name, value in values.items()}
    project = evidence.get("project")
    # marks are a command, and the dots stand for what a person writes
    words |= {"marks": str(evidence.get("marks")), "project": quote(project) if project else "…"}
    words["frees"] = "".join(f" && pvesm free {quote(one)}" for one in evidence.get("disks", ()))
    return remedy.format(**words)


def _looked_at(facts: Facts, finding: Kept) -> bool:
    """Return whether the look would show the finding if it still existed."""
    if finding.kind == "operation_overdue":
        return True
    if finding.server_uuid in facts.busy:
        return False
    if finding.kind in BY_FIREWALL and facts.firewalls is not None:
        judged = facts.firewalls.keys() - facts.firewalls_due
        return finding.server_uuid in judged or _is_gone(facts, finding)
    if finding.kind in _ALLOCATIONS:
        return facts.allocations is not None
    if finding.cluster is None or _is_left(facts, finding.cluster):
        return True
    inventory = facts.inventories.get(finding.cluster)
    seen = inventory is not None and finding.node not in inventory.unseen_nodes
    return seen and inventory is not None and _would_show(inventory, finding)


def _is_gone(facts: Facts, finding: Kept) -> bool:
    """Return whether the server has its VM there no more."""
    server = facts.servers.get(finding.server_uuid or "")
    return server is None or server.place != (finding.cluster, finding.vmid)


def _is_left(facts: Facts, cluster: str) -> bool:
    """Return whether the record has neither hosts nor servers in the cluster any more."""
    hosts = any(host.cluster == cluster for host in facts.hosts.values())
    return not hosts and not any(
        server.place is not None and server.cluster == cluster for server in facts.servers.values()
    )


def _would_show(inventory: ClusterInventory, finding: Kept) -> bool:
    if finding.kind == OF_OTHERS:
        return inventory.other_tags_complete
    vm = next((one for one in inventory.vms if one.vmid == finding.vmid), None)
    if finding.kind == ELSEWHERE and vm is None:
        # A VM of others: gone, or read in its turn.
        return inventory.other_references is not None and inventory.other_tags_complete
    if finding.kind in BY_CONFIG and vm is not None:
        return vm.read
    if finding.kind in LEFT_BEHIND and vm is not None:
        return settled(inventory, vm)
    # What isn't listed may be hidden.
    return vm is not None or not inventory.short


def _not_looked_at(facts: Facts, kept: Iterable[Kept]) -> set[tuple[str, str]]:
    return {(one.kind, one.subject) for one in kept if not _looked_at(facts, one)}


def _report(facts: Facts, left: Collection[Kept], *, healed: int) -> dict[str, Any]:
    inventories = facts.inventories.values()
    live = [server for server in facts.servers.values() if server.deleted_at is None]
    looked: Mapping[str, int] = {
        "servers": len(live),
        "vms": sum(len(one.vms) for one in inventories),
        "descriptions": sum(vm.read for one in inventories for vm in one.vms),
        "volumes": sum(len(one.volumes) for one in inventories),
        "allocations": len(facts.allocations or ()),
        "ports": len(facts.ports),
        "vmids": len(facts.reservations),
        "clusters": len(facts.inventories),
    }
    return {
        "clean": not left,
        "complete": not facts.unseen,
        "looked_at": looked,
        "open": dict(sorted(Counter(one.kind for one in left).items())),
        "healed": healed,
        "in_flux": len(facts.busy),
        "unseen": list(facts.unseen),
    }
