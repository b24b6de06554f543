"""Sees every step of every process as it is about to be taken, and says what becomes of it.

A step is a request to Proxmox VE or to placement, a message to another service, or a transaction
of a conductor. Each is reported twice, ``before`` and ``after`` it acts, by its taker: a child
process over a Unix socket (``tests/chaos/hooks.py``), the simulator and placement in this very
process. So steps have one order over all processes, and a failure strikes just where it is meant.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import json
import socket
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

GO = "go"
BEFORE, AFTER = "before", "after"

#: kinds of steps
PROXMOX, PLACEMENT, MESSAGE, TRANSACTION = "proxmox", "placement", "message", "transaction"
READY = "ready"


@dataclasses.dataclass(frozen=True, order=True)
class Step:
    """The ``number``-th step of that kind and name in one run; polls in a row are one step."""

    kind: str
    name: str
    number: int = 1
    role: str = ""
    """Which service takes it: conductor, scheduler, compute, client."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}#{self.number}"

    def writes(self) -> bool:
        """Whether it changes something in Proxmox VE."""
        return self.kind == PROXMOX and not self.name.startswith("GET ")


@dataclasses.dataclass
class Order:
    """What becomes of one step: ``act(process)`` is called at its ``phase`` and may answer for it.

    ``act`` returns what the taker shall do (``hooks.py`` knows the words); None: it continues.
    """

    step: Step
    phase: str
    act: Callable[[str], str | None]
    met: threading.Event = dataclasses.field(default_factory=threading.Event)


@dataclasses.dataclass(frozen=True)
class Ticket:
    """A step that is being taken; its ``after`` names it."""

    step: Step | None
    number: int


class Director:
    """One for each stage."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._counts: collections.Counter[tuple[str, str]] = collections.Counter()
        self._last: dict[str, str] = {}
        self._order: Order | None = None
        self._recorded: list[Step] | None = None
        self._idle: set[tuple[str, str]] = set()
        self._learning = False
        self._caused: frozenset[str] = frozenset()
        self._tickets: dict[int, Ticket] = {}
        self._numbers = itertools.count(1)
        self._ready: dict[str, threading.Event] = collections.defaultdict(threading.Event)
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen(128)
        threading.Thread(target=self._accept, name="director", daemon=True).start()

    def close(self) -> None:
        """Listen no more."""
        self._socket.close()

    # --- what the tests order

    def learn_idle(self, learning: bool, caused: Collection[str] = ()) -> None:
        """While learning, whatever happens is nobody's step: it also happens without a cause. But
        for messages that are ``caused`` by something: then it was before, and they are late."""
        with self._lock:
            self._learning, self._caused = learning, frozenset(caused)

    def record(self) -> list[Step]:
        """Begin a run; the list that is returned grows as steps are taken."""
        with self._lock:
            self._begin(None)
            self._recorded = []
            return self._recorded

    def arm(self, order: Order) -> None:
        """Begin a run in which one step meets the order."""
        with self._lock:
            self._begin(order)

    def disarm(self) -> None:
        """Nothing more is ordered or recorded."""
        with self._lock:
            self._begin(None)

    def _begin(self, order: Order | None) -> None:
        self._counts.clear()
        self._last.clear()
        self._order, self._recorded = order, None

    # --- what processes report

    def ready(self, process: str) -> threading.Event:
        """Set when the process has said that it runs."""
        return self._ready[process]

    def before(self, process: str, kind: str, name: str) -> tuple[str, int]:
        """A step is about to be taken: what its taker shall do, and its ticket."""
        with self._lock:
            step = self._counted(process, kind, name)
            number = next(self._numbers)
            order = self._order
            if step is not None and order is not None and _same(order.step, step):
                self._tickets[number] = Ticket(step, number)
                act = order.act if order.phase == BEFORE else None
            else:
                return GO, number
        return self._answer(order, act, process), number

    def after(self, process: str, number: int) -> str:
        """The step has acted; its taker has not received the answer yet."""
        with self._lock:
            ticket, order = self._tickets.pop(number, None), self._order
            if ticket is None or order is None or order.phase != AFTER:
                return GO
        return self._answer(order, order.act, process)

    @staticmethod
    def _answer(order: Order, act: Callable[[str], str | None] | None, process: str) -> str:
        if act is None or order.met.is_set():
            return GO
        order.met.set()
        return act(process) or GO

    def _counted(self, process: str, kind: str, name: str) -> Step | None:
        if self._learning:
            if kind != MESSAGE or name not in self._caused:
                self._idle.add((kind, name))
            return None
        if (kind, name) in self._idle:
            return None
        repeated = self._last.get(kind) == name and name.startswith("GET ")
        self._last[kind] = name
        if not repeated:
            self._counts[kind, name] += 1
        step = Step(kind, name, self._counts[kind, name], role_of(process))
        if self._recorded is not None and not repeated:
            self._recorded.append(step)
        return step

    # --- the socket

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._listen, args=(connection,), daemon=True).start()

    def _listen(self, connection: socket.socket) -> None:
        # A process that was killed hears no answer any more.
        with contextlib.suppress(OSError), connection:
            with connection.makefile("rw", encoding="utf-8") as stream:
                for line in stream:
                    stream.write(json.dumps(self._handle(json.loads(line))) + "\n")
                    stream.flush()

    def _handle(self, said: dict[str, Any]) -> dict[str, Any]:
        process = said["process"]
        if said["kind"] == READY:
            self._ready[process].set()
            return {"do": GO}
        if "ticket" in said:
            return {"do": self.after(process, said["ticket"])}
        verdict, number = self.before(process, said["kind"], said["name"])
        return {"do": verdict, "ticket": number}


def role_of(process: str) -> str:
    """``conductor-2`` is a conductor."""
    return process.partition("-")[0]


def _same(one: Step, other: Step) -> bool:
    return (one.kind, one.name, one.number) == (other.kind, other.name, other.number)
