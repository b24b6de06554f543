"""Run a cloud under random load and failures: ``python -m benchmarks.soak --minutes 30``, JSON.

Some two hundred servers are kept alive on a simulated cluster: they are created, deleted, stopped,
started, paused, suspended, resized, rebuilt, rescued, shelved, copied, deleted for a while, given
and deprived of interfaces and, where their disks are shared, moved at random. At the same time
conductors, schedulers and agents are killed, the connections to the broker are cut, the broker
itself is restarted, the simulated Proxmox VE gets every kind of fault, and nodes are lost and come
back. At the end everything is deleted, and nothing may be left that no record owns.

The services are real processes on PostgreSQL and RabbitMQ; simulator and placement run in this
one. The seed decides what is done; the times depend on the machine. Exit code 1: not clean.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from common.errors import MicronovaError
from db import schema
from tests.chaos.actions import ask, delete_images
from tests.chaos.cloud import LEFT_DRIVE, Overdue
from tests.chaos.stage import Plan, Stage, stage

ORDERS: tuple[dict[str, Any], ...] = (
    {"action": "fail", "method": "POST", "path": "/clone$"},
    {"action": "fail", "status": 595, "path": "/nodes/pve1/", "times": 5},
    {"action": "hang", "method": "POST", "path": "/qemu/"},
    {"action": "drop", "path": "/tasks/"},
    {"action": "lose-answer", "method": "POST", "path": "/clone$"},
    {"action": "lose-answer", "method": "POST", "path": "/qemu/", "how": "drop"},
    {"action": "lose-answer", "method": "DELETE", "path": r"/qemu/[0-9]+$", "status": 599},
    {"action": "slow", "path": "/nodes/", "seconds": 5, "times": 50},
    {"action": "task-fail", "method": "POST", "path": "/clone$"},
    {"action": "task-fail", "method": "POST", "path": "/status/start$"},
    {"action": "task-kill", "method": "POST", "path": "/clone$"},
    {"action": "task-kill", "method": "DELETE", "path": r"/qemu/[0-9]+$"},
    {"leak": "L4"},
    {"leak": "L7"},
    {"action": "no-quorum", "seconds": 60},
    {"action": "daemon-restart", "node": "pve2"},
    {"action": "daemon-hung", "node": "pve3", "seconds": 60},
    {"action": "proxy-down", "node": "pve2", "seconds": 60},
    {"action": "storage-full", "storage": "local", "seconds": 30},
    {"action": "storage-slow", "storage": "local", "seconds": 5},
    {"action": "lock-held", "storage": "local", "node": "pve1", "seconds": 30},
    {"action": "node-down", "node": "pve3", "seconds": 120},
    {"action": "token-revoked", "seconds": 20},
)

DELETE = "delete"
#: what the user may ask for next; in any other state only the delete
WAYS: dict[str, tuple[str, ...]] = {
    "active": (
        *("stop", "reboot-hard", "pause", "suspend", "resize", "rebuild", "rescue", "shelve"),
        *("createImage", "createBackup", "attach_interface", "detach_interface"),
        *("migrate", "live-migration", "soft-delete", DELETE),
    ),
    "stopped": ("start", "resize", "migrate", DELETE),
    "paused": ("unpause", "reboot-hard", DELETE),
    "suspended": ("resume", "reboot-hard", DELETE),
    "resized": ("confirmResize", "revertResize", DELETE),
    "rescued": ("unrescue", DELETE),
    "shelved_offloaded": ("unshelve", DELETE),
    "soft-delete": ("restore", DELETE),
}

KILL, CUT, RESTART, ORDER = "kill ", "cut", "restart", "order "


class Soak:
    """The random user, and the random faults."""

    def __init__(self, cloud: Stage, servers: int, seed: int) -> None:
        self._cloud, self._servers = cloud, servers
        self._random = random.Random(seed)
        self._number = 0
        self._slow: int | None = None
        self.done: collections.Counter[str] = collections.Counter()
        """What the user asked for, by action."""
        self.struck: collections.Counter[str] = collections.Counter()
        """Misfortunes: ``kill <service>``, ``cut``, ``restart``, ``order <what>``."""
        self.most_alive = 0
        # A node that dies right after a move still holds what the VM had there until it is back.
        cloud.may_heal = frozenset({LEFT_DRIVE})
        self._misfortunes: tuple[tuple[int, Callable[[], str]], ...] = (
            (4, self._kill),
            (2, self._cut),
            (1, self._restart),
            (12, self._order),
        )

    def run(self, seconds: float) -> None:
        """Run for so many seconds."""
        end = time.monotonic() + seconds
        pause = threading.Event()
        misfortune = time.monotonic() + 5
        while time.monotonic() < end:
            self._use()
            if time.monotonic() > misfortune:
                misfortune = time.monotonic() + self._random.uniform(1, 5)
                weights, kinds = zip(*self._misfortunes, strict=True)
                (strike,) = self._random.choices(kinds, weights)
                self.struck[strike()] += 1
            pause.wait(0.02)

    def _use(self) -> None:
        alive = self._cloud.rows(
            sa.select(
                schema.servers.c.uuid, schema.servers.c.vm_state, schema.servers.c.task_state
            ).where(schema.servers.c.deleted_at.is_(None))
        )
        self.most_alive = max(self.most_alive, len(alive))
        idle = [row for row in alive if row.task_state is None and row.vm_state != "building"]
        if len(alive) < self._servers and self._random.random() < 0.7:
            self._number += 1
            self._cloud.create(f"soak-{self._number}")
            self.done["create"] += 1
        elif idle:
            row = self._random.choice(idle)
            crowded = len(alive) >= self._servers
            ways = (DELETE,) if crowded else WAYS.get(row.vm_state, (DELETE,))
            action = self._random.choice(ways)
            with contextlib.suppress(MicronovaError):
                if action == DELETE:
                    self._cloud.act(row.uuid, action)
                else:
                    ask(self._cloud, row.uuid, action)
                self.done[action] += 1
        self._cloud.end_pauses()
        self._cloud.follow_remedies()

    # --- faults

    def _kill(self) -> str:
        name = self._random.choice(self._cloud.services)
        self._cloud.kill(name)
        return f"{KILL}{name.partition('-')[0]}"

    def _cut(self) -> str:
        self._cloud.cut(self._random.uniform(0.5, 3))
        return CUT

    def _restart(self) -> str:
        self._cloud.restart_broker(self._random.uniform(0.5, 3))
        return RESTART

    def _order(self) -> str:
        order = dict(self._random.choice(ORDERS))
        fault = self._cloud.simulator.fault(**order)
        if self._slow is not None:
            self._cloud.simulator.take_back(self._slow)
        # This fault alone would last for ever.
        self._slow = fault if order.get("action") == "storage-slow" else None
        return f"{ORDER}{order.get('action') or order['leak']}"


def outcome(cloud: Stage, soak: Soak, seconds: float, servers: int) -> dict[str, Any]:
    """End everything, and return the result."""
    cloud.settle()
    alive = len(cloud.alive())
    problem = audit = ""
    try:
        cloud.helped(lambda: not _under_way(cloud))
        # A drive on a node that did not answer is the audit's to remove; it says so.
        audit = cloud.audit_problem()
        before = cloud.differences()
        delete_images(cloud)
        problem = cloud.clear_away()
        audit = audit or cloud.audit_problem()
    except Overdue as overdue:
        before, problem = [], f"overdue: {overdue}"
    states = cloud.rows(
        sa.select(schema.servers.c.vm_state, sa.func.count()).group_by(schema.servers.c.vm_state)
    )
    faults = cloud.rows(
        sa.select(schema.faults.c.category, sa.func.count()).group_by(schema.faults.c.category)
    )
    quarantined = schema.vmids.c.state == "quarantined"
    return {
        "seconds": round(seconds),
        "servers": servers,
        "alive_at_the_end": alive,
        "most_alive": soak.most_alive,
        "operations": {"all": soak.done.total(), **dict(sorted(soak.done.items()))},
        "kills": _struck(soak, KILL),
        "cuts": soak.struck[CUT],
        "broker_restarts": soak.struck[RESTART],
        "faults_ordered": _struck(soak, ORDER),
        "servers_by_state": {row[0]: row[1] for row in states},
        "faults_by_category": {row[0]: row[1] for row in faults},
        "vmids_quarantined": len(cloud.rows(sa.select(schema.vmids.c.vmid).where(quarantined))),
        "remedies_followed": len(cloud.followed),
        "differences_with_servers_alive": before,
        "left": problem,
        "audit": audit or "clean",
        "clean": not problem and not before and not audit,
    }


def _struck(soak: Soak, kind: str) -> dict[str, int]:
    """Return the faults of a kind, by name, and their sum."""
    found = {
        name.removeprefix(kind): count
        for name, count in sorted(soak.struck.items())
        if name.startswith(kind)
    }
    return {"all": sum(found.values()), **found}


def _under_way(cloud: Stage) -> bool:
    return any(
        row.task_state is not None or row.vm_state == "building" for row in cloud.alive()
    ) or bool(cloud.open_operations())


def main() -> int:
    """Run the soak and print its summary."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--servers", type=int, default=200, help="kept alive")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--storage", choices=("local", "shared"), default="local", help="shared: servers move, too"
    )
    parser.add_argument("--folder", type=Path, help="keep logs and state there")
    given = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        options = {
            "conductor": {"lease_seconds": "10"},
            "rpc": {"rpc_timeout_seconds": "8"},
            "proxmox:sim1": {"vm_storage": given.storage},
        }
        plan = Plan(conductors=2, schedulers=2, nodes=4, speed=20, options=options)
        cloud = stack.enter_context(stage(folder / "stage", plan, audited=False))
        soak = Soak(cloud, given.servers, given.seed)
        seconds = 60 * given.minutes
        soak.run(seconds)
        result = outcome(cloud, soak, seconds, given.servers)
    print(json.dumps(result, indent=2))
    return 0 if result["clean"] else 1


if __name__ == "__main__":
    sys.exit(main())
