"""Runs tests in several processes that are forked once all tests are collected: ``--forks N``.

Each takes a unit of ``tests/distribution.py`` at a time and sends the first process its reports.
What all of them import is imported, and collected, once.
"""

from __future__ import annotations

import atexit
import collections
import itertools
import os
import random
import selectors
import socket
import struct
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests import distribution, times

_HEAD = struct.Struct("!I")
_kept: list[Any] = []
"""What a forked process has of the first one, and uses no more."""

Units = Sequence[Sequence[pytest.Item]]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run everything in processes of its own, where that is asked for."""
    count = session.config.getoption("--forks")
    if count < 1 or session.config.option.collectonly or session.testsfailed:
        return None
    _Parent(session, units_of(session.items)).run(count)
    return True


def units_of(items: Sequence[pytest.Item]) -> list[list[pytest.Item]]:
    """What runs in one process, in the order of the first test of each."""
    found: dict[str, list[pytest.Item]] = collections.defaultdict(list)
    for item in items:
        found[distribution.unit_of(item.nodeid)].append(item)
    return list(found.values())


class _Line:
    """Messages between two processes. Nothing is read ahead: a selector sees all that waits."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end

    def send(self, message: Any) -> None:
        """Send it, whole."""
        text = orjson.dumps(message, default=str)
        self.end.sendall(_HEAD.pack(len(text)) + text)

    def receive(self) -> Any:
        """Wait for one; None: the other process has ended."""
        head = self._read(_HEAD.size)
        return orjson.loads(self._read(*_HEAD.unpack(head))) if head else None

    def _read(self, size: int) -> bytes:
        found = self.end.recv(size, socket.MSG_WAITALL)
        return found if len(found) == size else b""

    def close(self) -> None:
        """Let go of it."""
        self.end.close()


class _Child:
    """One process, as the first one knows it."""

    def __init__(self, number: int, pid: int, line: _Line) -> None:
        self.number, self.pid, self.line = number, pid, line
        self.waiting: list[str] = []
        """Tests that it was given and whose end it has not reported."""


class _Parent:
    def __init__(self, session: pytest.Session, units: Units) -> None:
        self._session, self._units = session, units
        self._next = iter(range(len(units)))
        self._numbers = itertools.count()
        self._selector = selectors.DefaultSelector()
        # Each child has a folder in this one.
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]

    def run(self, count: int) -> None:
        """Run all units; a process that dies fails the test that it was at."""
        for _ in range(min(count, len(self._units))):
            self._fork()
        while self._selector.get_map():
            for key, _ in self._selector.select():
                self._receive(key.data)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _fork(self) -> None:
        mine, theirs = socket.socketpair()
        number = next(self._numbers)
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            for key in list(self._selector.get_map().values()):
                key.data.line.close()
            mine.close()
            _run_child(self._session, self._units, number, _Line(theirs))
        theirs.close()
        child = _Child(number, pid, _Line(mine))
        self._selector.register(mine, selectors.EVENT_READ, child)

    def _receive(self, child: _Child) -> None:
        received = child.line.receive()
        if received is None:
            self._end(child)
        elif received == "next":
            self._give(child)
        else:
            report = self._session.config.hook.pytest_report_from_serializable(
                config=self._session.config, data=received
            )
            if isinstance(report.longrepr, list):
                # Why a test was skipped: pytest's summary takes it as a tuple only.
                report.longrepr = tuple(report.longrepr)
            if report.when == "teardown" and report.nodeid in child.waiting:
                child.waiting.remove(report.nodeid)
            self._session.config.hook.pytest_runtest_logreport(report=report)
            self._name(report)

    def _name(self, report: pytest.TestReport) -> None:
        """Print what fails at once: a run that is ended early has no summary."""
        printer: Any = self._session.config.pluginmanager.getplugin("terminalreporter")
        if report.failed and printer is not None:
            crash = getattr(report.longrepr, "reprcrash", None)
            why = (crash.message if crash else report.longreprtext).strip().partition("\n")[0]
            printer.write_line(f"{report.when} of {report.nodeid} failed: {why[:200]}")

    def _give(self, child: _Child) -> None:
        stop = self._session.shouldfail or self._session.shouldstop
        unit = None if stop else next(self._next, None)
        if unit is not None:
            child.waiting += [item.nodeid for item in self._units[unit]]
        child.line.send({"unit": unit})

    def _end(self, child: _Child) -> None:
        self._selector.unregister(child.line.end)
        child.line.close()
        _, status = os.waitpid(child.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if not child.waiting and code == 0:
            return
        names = child.waiting or [f"process-{child.number}"]
        for number, nodeid in enumerate(names):
            why = f"process {child.number} ended with {code}" if not number else "was not begun"
            report = pytest.TestReport(
                nodeid=nodeid,
                location=(nodeid, None, nodeid),
                keywords={},
                outcome="failed",
                longrepr=f"{nodeid}: {why}",
                when="call",
            )
            self._session.config.hook.pytest_runtest_logreport(report=report)
        if child.waiting:
            self._fork()


def _run_child(session: pytest.Session, units: Units, number: int, line: _Line) -> None:
    """Run units until there are no more, and end."""
    code = 1
    try:
        _settle(session.config, number)
        session.config.pluginmanager.register(_Reporter(session.config, line), "reporter-of-fork")
        _run_units(session, units, line)
        atexit._run_exitfuncs()
        code = 0
    except BaseException:  # noqa: BLE001 - this is the end of the process
        capture = session.config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.suspend_global_capture(in_=True)
        traceback.print_exc(file=sys.__stderr__)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _settle(config: pytest.Config, number: int) -> None:
    """Have nothing in common with the other processes."""
    manager = config.pluginmanager
    for name in ("terminalreporter", "times-record", "lfplugin", "nfplugin", "stepwiseplugin"):
        if manager.hasplugin(name):
            manager.unregister(name=name)
    capture = manager.getplugin("capturemanager")
    if capture is not None and capture.is_globally_capturing():
        # The old one is not closed: there are loggers that hold it.
        capture.suspend_global_capture(in_=True)
        _kept.append(capture._global_capturing)
        capture._global_capturing = None
        capture.start_global_capturing()
    factory: Any = config._tmp_path_factory  # type: ignore[attr-defined]
    own: Path = factory.getbasetemp() / f"process-{number}"
    own.mkdir()
    factory._basetemp = own
    meter = manager.getplugin("times-meter")
    if isinstance(meter, times.Meter):
        meter.begin()
    random.seed()


class _Reporter:
    """Sends every report to the first process."""

    def __init__(self, config: pytest.Config, line: _Line) -> None:
        self._config, self._line = config, line

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send one."""
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._line.send(data)


def _run_units(session: pytest.Session, units: Units, line: _Line) -> None:
    """Run each test with the next one, as what they share is kept for it."""
    items = _asked_for(units, line)
    item = next(items, None)
    while item is not None:
        following = next(items, None)
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        item = following


def _asked_for(units: Units, line: _Line) -> Iterator[pytest.Item]:
    while True:
        line.send("next")
        answer = line.receive()
        if answer is None or answer["unit"] is None:
            return
        yield from units[answer["unit"]]
