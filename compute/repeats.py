"""Commands that come twice, or late: what must not be done again is answered, or not done."""

from __future__ import annotations

import collections
import threading
from typing import TypeVar

from common import clock
from common.messages.commands import Build, Command, Destroy, Mark, Power
from common.messages.reports import Outcome

K = TypeVar("K")
V = TypeVar("V")

#: servers whose destroy is remembered, and outcomes
REMEMBERED = 10_000


class Repeats:
    """What this process knows of earlier commands; threads may share it."""

    def __init__(self) -> None:
        self._began_at = clock.utcnow()
        self._lock = threading.Lock()
        self._destroyed: collections.OrderedDict[str, int] = collections.OrderedDict()
        self._outcomes: collections.OrderedDict[tuple[int, int], Outcome] = (
            collections.OrderedDict()
        )

    def is_stale(self, command: Command) -> bool:
        """Whether it may be a copy of what was done, and undone since, before this process began.

        It is not answered: the first heartbeat ends the leases of an earlier process, and what is
        still to be done is sent again. A Destroy does no harm, nor does what has no lease.
        """
        if command.sent_at is None or not isinstance(command, Build | Power | Mark):
            return False
        return command.sent_at < self._began_at

    def is_overtaken(self, command: Command) -> bool:
        """Return whether a Destroy of the server was taken that a late command must not undo.

        That is one of a later operation, or of the command's own, which has been given up then.
        Remembers the command if it is a Destroy.
        """
        server, operation_id = command.server_uuid, command.operation_id
        with self._lock:
            last = self._destroyed.get(server, -1)
            if isinstance(command, Destroy):
                _remember(self._destroyed, server, max(last, operation_id))
                return False
            return last >= operation_id

    def outcome(self, command: Command) -> Outcome | None:
        """Return what the command ended with when it came before."""
        if isinstance(command, Destroy):
            return None
        with self._lock:
            return self._outcomes.get((command.operation_id, command.attempt))

    def keep(self, command: Command, outcome: Outcome) -> None:
        """Keep the outcome of what must not be done again when the command is sent again.

        A build that left nothing may have been given up, its VMID too, by the time that it would
        run again; a reboot would be a second one.
        """
        given_up = isinstance(command, Build) and not outcome.ok and outcome.gone
        if given_up or isinstance(command, Power):
            with self._lock:
                _remember(self._outcomes, (command.operation_id, command.attempt), outcome)


def _remember(memory: collections.OrderedDict[K, V], key: K, value: V) -> None:
    """Keep it; the oldest ones make room."""
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > REMEMBERED:
        memory.popitem(last=False)
