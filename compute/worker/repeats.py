"""Repeated or late commands: those that must not run again are answered, or ignored."""

from __future__ import annotations

import collections
import datetime
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from common.failures import Verdict, verdict_of
from common.messages.commands import (
    Command,
    Copy,
    Destroy,
    EndSwap,
    Mark,
    Move,
    Plug,
    PlugVolume,
    Power,
    RetypeVolume,
    Shape,
    SnapVolume,
    Swap,
)
from common.messages.reports import Built, Outcome, Removed

K = TypeVar("K")
V = TypeVar("V")

#: operation, attempt, node, what is to be done
_Key = tuple[int, int, str, str]

#: number of an operation, and when it began
_Begun = tuple[int, datetime.datetime]

#: numbers of remembered destroys and outcomes
REMEMBERED = 10_000

#: command → the field that differs between the commands of one kind that an operation sends: its
#: undo is one of them
_ASKED: Mapping[type[Command], Callable[[Any], object]] = {
    EndSwap: lambda one: one.keep,
    Mark: lambda one: one.on,
    Move: lambda one: one.target_node,
    Plug: lambda one: one.on,
    PlugVolume: lambda one: one.on,
    Power: lambda one: one.action.value,
    Shape: lambda one: one.size,
    SnapVolume: lambda one: one.verb.value,
}
#: answered from memory when repeated: a later operation may have undone it by then
_ONCE = (EndSwap, Mark, Move, Plug, PlugVolume, RetypeVolume, Shape, SnapVolume, Swap)


class Repeats:
    """Earlier commands of this process; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._destroyed: collections.OrderedDict[str, int] = collections.OrderedDict()
        self._left: collections.OrderedDict[int, int] = collections.OrderedDict()
        self._powered: collections.OrderedDict[str, _Begun] = collections.OrderedDict()
        self._outcomes: collections.OrderedDict[_Key, Outcome] = collections.OrderedDict()
        self._done: collections.OrderedDict[_Key, None] = collections.OrderedDict()

    def is_overtaken(self, command: Command) -> bool:
        """Return whether a later Destroy of the server was accepted, which this must not undo, or
        one of what this attempt of a build left.

        That is one of a later operation, or of the command's own, which was given up then. Records
        the command if it is a Destroy.
        """
        server, operation_id = command.resource_id, command.operation_id
        with self._lock:
            last = self._destroyed.get(server, -1)
            if isinstance(command, Destroy) and command.of_server:
                _remember(self._destroyed, server, max(last, operation_id))
                return False
            if isinstance(command, Destroy) and command.build:
                attempt = max(command.build_attempt, self._left.get(command.build, 0))
                _remember(self._left, command.build, attempt)
                return False
            return last >= operation_id or self._left.get(operation_id, -1) >= command.attempt

    def is_outdated(self, command: Command) -> bool:
        """Return whether a later operation of the server has sent a Power command before this one.

        A hard reboot takes over a suspend whose command may still be on the way. An operation is
        later if its number is higher and it began later: a restored database uses numbers again.
        Records a Power command that isn't outdated.
        """
        if not isinstance(command, Power) or command.began_at is None:
            return False
        begun = (command.operation_id, command.began_at)
        with self._lock:
            last = self._powered.get(command.resource_id, begun)
            if begun[0] < last[0] and begun[1] <= last[1]:
                return True
            _remember(self._powered, command.resource_id, begun)
            return False

    def outcome(self, command: Command) -> Outcome | None:
        """Return the outcome of the command if it was carried out before."""
        if isinstance(command, Destroy):
            return None
        with self._lock:
            return self._outcomes.get(_key(command))

    def is_done(self, command: Command) -> bool:
        """Return whether it was carried out before, and ended well."""
        with self._lock:
            return _key(command) in self._done

    def keep(self, command: Command, outcome: Outcome) -> None:
        """Keep the outcome of a command that must not be repeated.

        Before a repeat, a build that left nothing may have been given up, with its VMID, and an
        image may have been deleted; a repeated reboot would be a second one, and a repeated move
        or plug would follow its own undoing. A volume may have been attached to a server before a
        repeated revert would roll it back again.
        """
        if outcome.ok:
            with self._lock:
                _remember(self._done, _key(command), None)
        if isinstance(command, Destroy):
            self._forget_refused(command, outcome)
        given_up = isinstance(outcome, Built) and not outcome.ok and outcome.gone
        once = isinstance(command, _ONCE) and outcome.ok
        if given_up or once or isinstance(command, Copy | Power):
            with self._lock:
                _remember(self._outcomes, _key(command), outcome)

    def _forget_refused(self, command: Destroy, outcome: Outcome) -> None:
        """Forget a Destroy that failed for good: the server's other operations go on."""
        failure = outcome.failure
        gone = isinstance(outcome, Removed) and outcome.gone
        if gone or failure is None or verdict_of(failure) != Verdict.FATAL:
            return
        with self._lock:
            if self._destroyed.get(command.resource_id) == command.operation_id:
                del self._destroyed[command.resource_id]


def asked(command: Command) -> str:
    """Identify what a command does: a repetition has the same value, the undo another one."""
    kind = type(command)
    return f"{kind.__name__} {_ASKED[kind](command)}" if kind in _ASKED else kind.__name__


def _key(command: Command) -> _Key:
    """Return what a command and its repetition have in common.

    One attempt of an operation may have several commands of a kind, as a stop on one node and a
    start on another. A command that only looks where something is (settle) has its own outcome.
    """
    what = asked(command)
    if isinstance(command, Move | RetypeVolume) and command.settle:
        what = f"settle {what}"
    return command.operation_id, command.attempt, command.placed.node, what


def _remember(memory: collections.OrderedDict[K, V], key: K, value: V) -> None:
    """Add it; the oldest entries are dropped."""
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > REMEMBERED:
        memory.popitem(last=False)
