"""Who a worker under test talks to, where other services would be."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from common import codec, rpc
from common.messages.commands import Command
from common.messages.facts import Heartbeat
from common.messages.reports import Report, Working
from common.messages.tenures import Claim, Granted
from common.messages.topics import CONDUCTOR_EVENTS_TOPIC

WAIT_SECONDS = 120


class FakeConductor:
    """Listens where the conductor would; records what it receives."""

    def __init__(self, transport: Any) -> None:
        self.changed = threading.Condition()
        self.reports: list[Report] = []
        self._by_operation: dict[int, list[Report]] = collections.defaultdict(list)
        self.asked: list[Working] = []
        """What agents asked whether they may undo."""
        self.lease_seconds = 3600.0
        self.elsewhere = False
        """Whether another worker carries the agents."""
        self.may = True
        """What they are answered."""
        self.lost = False
        """Whether the ledger has lost what they may not start."""
        self.started: list[Working] = []
        """What agents asked whether they may start its VM; they may, unless ``may`` is False."""
        self.before_start: Callable[[], object] = lambda: None
        """Called before they are answered."""
        self.guests: list[Any] = []
        """Whose the VMs on the worker's hosts are."""
        self.heartbeats: list[Heartbeat] = []
        self.server = rpc.Server(transport, CONDUCTOR_EVENTS_TOPIC, "conductor", [self], workers=2)

    def owners(self, ctxt: Any, worker: str) -> list[Any]:
        return self.guests

    def health_checks(self, ctxt: Any, worker: str) -> list[Any]:
        """No group has checks."""
        return []

    def report(self, ctxt: Any, reports: list[Mapping[str, Any]]) -> None:
        with self.changed:
            for report in (codec.load(Report, one) for one in reports):
                self.reports.append(report)
                self._by_operation[report.operation_id].append(report)
            self.changed.notify_all()

    def heartbeat(self, ctxt: Any, heartbeat: Mapping[str, Any]) -> None:
        with self.changed:
            self.heartbeats.append(codec.load(Heartbeat, heartbeat))
            self.changed.notify_all()

    def claim_agents(self, ctxt: Any, claim: Mapping[str, Any]) -> Granted:
        """The one worker that there is carries all."""
        asked = codec.load(Claim, claim)
        held = () if self.elsewhere else tuple(one.name for one in asked.units)
        return Granted(max(asked.tenure, 1), self.lease_seconds, held)

    def release_agents(self, ctxt: Any, worker: str) -> None:
        """Nobody takes over."""

    def may_undo(self, ctxt: Any, worker: str, working: Mapping[str, Any]) -> bool:
        self.asked.append(codec.load(Working, working))
        return self.may

    def may_start(self, ctxt: Any, worker: str, working: list[Mapping[str, Any]]) -> list[Working]:
        asked = [codec.load(Working, one) for one in working]
        self.started += asked
        self.before_start()
        refused = [one.as_lost() for one in asked] if self.lost else []
        return asked if self.may else refused

    def vm_states(self, ctxt: Any, **states: Any) -> None:
        """What was seen of VMs: received, and of no use here."""

    def wait_for(self, found: Any) -> Any:
        with self.changed:
            assert self.changed.wait_for(found, timeout=WAIT_SECONDS), "nothing came in time"
            return found()

    def outcomes(self, command: Command) -> list[Any]:
        return [
            one.outcome
            for one in self._by_operation[command.operation_id]
            if one.outcome is not None and one.attempt == command.attempt
        ]

    def steps(self, command: Command) -> dict[str, Any]:
        """The last word on each step, by name."""
        found = {}
        for report in self._by_operation[command.operation_id]:
            for step in report.steps:
                before = found.get(step.name)
                if before is None or before.result is None or step.result is not None:
                    found[step.name] = step
        return dict(sorted(found.items(), key=lambda item: item[1].sequence))


class FakePlacement:
    """Records what it is sent."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.inventories: dict[str, Any] = {}
        self.kept: dict[str, frozenset[str]] = {}
        self.classes: list[str] = []

    def ensure_provider(self, uuid: str, name: str) -> None:
        self.names[uuid] = name
        self.kept.setdefault(uuid, frozenset({"COMPUTE_STATUS_DISABLED"}))

    def ensure_resource_class(self, name: str) -> None:
        self.classes.append(name)

    def set_inventory(self, uuid: str, inventories: Any) -> None:
        self.inventories[uuid] = inventories

    def providers(self) -> list[Any]:
        return [SimpleNamespace(uuid=uuid, name=name) for uuid, name in self.names.items()]

    def add_provider(self, uuid: str, name: str, inventories: Any, traits: Any) -> None:
        self.names[uuid], self.inventories[uuid] = name, inventories
        self.kept[uuid] = frozenset(traits)

    def add_providers(self, providers: Any) -> None:
        """As OpenStack's placement: one at a time."""

    def change_traits(self, uuid: str, change: Any) -> bool:
        before, self.kept[uuid] = self.kept[uuid], frozenset(change(self.kept[uuid]))
        return before != self.kept[uuid]
