"""Random operations on conductor, agent and simulator, against a model of one set of states each.

The model knows for each server what it may be once nothing is under way: one state, unless a fault
was ordered since then. Services are stopped and started in the middle of things, which must change
nothing. At every rest reality must be the model, and nothing may be left over.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from common.errors import ServerNotFound, ServerStateConflict
from common.resources.states import ACTIONS
from tests.chaos.world import World, world

EXAMPLES, STEPS = 6, 12
MOST_SERVERS = 6

FAULTS: tuple[dict[str, Any], ...] = (
    {"action": "lose-answer", "method": "POST", "path": "/clone$"},
    {"action": "lose-answer", "method": "POST", "path": r"/qemu/\d+/config$", "how": "drop"},
    {"action": "lose-answer", "method": "DELETE", "path": r"/qemu/\d+$"},
    {"action": "fail", "method": "POST", "path": "/status/start$", "text": "start failed"},
    {"action": "fail", "status": 595, "path": "/nodes/pve1/"},
    {"action": "drop", "method": "PUT", "path": "/resize$"},
    {"action": "hang", "method": "POST", "path": "/upload$"},
    {"action": "task-fail", "method": "POST", "path": "/clone$"},
    {"action": "task-fail", "method": "POST", "path": "/status/"},
    {"action": "task-kill", "method": "POST", "path": "/clone$"},
    {"leak": "L7"},
)


class Operations(RuleBasedStateMachine):
    """What a user, an operator and the world do."""

    cloud: ClassVar[World]
    numbers: ClassVar[itertools.count[int]] = itertools.count(1)

    def __init__(self) -> None:
        super().__init__()
        self.expected: dict[str, frozenset[str]] = {}
        self.faulty = False

    # --- what is done

    @precondition(lambda self: len(self.expected) < MOST_SERVERS)
    @rule()
    def create(self) -> None:
        """Ask for a server."""
        name = f"s{next(self.numbers)}"
        self.cloud.create(name)
        self.expected[name] = self._or_failed({"active"}, {"error"})

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """Delete one, in whatever state it is."""
        name = data.draw(st.sampled_from(sorted(self.expected)))
        try:
            self.cloud.act(self.cloud.named(name).uuid, "delete")
        except ServerNotFound:
            # It was asked for before, and is done.
            assert self.cloud.named(name).deleted_at is not None
        self.expected[name] = self._or_failed({"deleted"}, {"error"})

    @precondition(lambda self: self.expected)
    @rule(data=st.data(), action=st.sampled_from(["stop", "start", "reboot-hard"]))
    def power(self, data: st.DataObject, action: str) -> None:
        """Stop, start or reboot a server that is at rest."""
        name = data.draw(st.sampled_from(sorted(self.expected)))
        row = self._at_rest(name)
        may = ACTIONS[action].vm_states
        assert may is not None
        if row.vm_state not in may or row.launched_at is None:
            if row.deleted_at is None:
                with pytest.raises(ServerStateConflict):
                    self.cloud.act(row.uuid, action)
            return
        self.cloud.act(row.uuid, action)
        done = str(ACTIONS[action].done)
        self.expected[name] = self._or_failed({done}, {str(row.vm_state), "error"})

    @rule(kind=st.sampled_from(["compute", "conductor", "scheduler"]))
    def restart(self, kind: str) -> None:
        """A service is stopped where it stands, and started."""
        self.cloud.restart(kind)

    @rule(fault=st.sampled_from(FAULTS))
    def fail(self, fault: dict[str, Any]) -> None:
        """Something will go wrong, once."""
        self.cloud.simulator.fault(**fault)
        self.faulty = True
        # It may strike what is under way, too.
        self.expected = {
            name: states | {"error", "active", "stopped"} if states != {"deleted"} else states
            for name, states in self.expected.items()
        }

    @rule()
    def rest(self) -> None:
        """Every operation ends, and the servers are in the states that were expected."""
        for name, states in list(self.expected.items()):
            row = self._at_rest(name)
            assert row.vm_state in states, (name, row.vm_state, states)
            if row.deleted_at is not None:
                del self.expected[name]
            else:
                self.expected[name] = frozenset({str(row.vm_state)})
        self.cloud.simulator.clear_faults()
        self.faulty = False
        self.cloud.helped(lambda: not self.cloud.open_operations())
        assert self.cloud.left() == ""

    # --- what holds at any time

    @invariant()
    def no_vmid_is_two_servers(self) -> None:
        """What Proxmox VE has is each of one server, or of a template."""
        owned = [row.vmid for row in self.cloud.alive() if row.vmid is not None]
        assert len(owned) == len(set(owned))

    def teardown(self) -> None:
        """Nothing is left."""
        self.cloud.simulator.clear_faults()
        assert self.cloud.clear_away() == ""

    # --- inner

    def _at_rest(self, name: str) -> Any:
        """Its row once nothing is done to it."""

        def rested() -> Any:
            row = self.cloud.named(name)
            busy = row.task_state is not None or row.vm_state == "building"
            return None if busy else row

        return self.cloud.helped(rested)

    def _or_failed(self, done: set[str], failed: set[str]) -> frozenset[str]:
        return frozenset(done | failed if self.faulty else done)


def test_random_operations(tmp_path: Path) -> None:
    with world(tmp_path) as cloud:
        Operations.cloud = cloud
        run_state_machine_as_test(
            Operations,
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                deadline=None,
                # The same examples each time; shrinking would need the cloud of that moment.
                derandomize=True,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
                report_multiple_bugs=False,
            ),
        )
