"""The end of a process tree: together, reported, and cut short by a user who can't wait."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from common.process.child import Child
from launcher.embedded.ending import Ending

START_SECONDS = 240

_READY = """
import json, os, signal, sys, threading
def tell(**message):
    os.write(int(os.environ["MICRONOVA_READY_FD"]), json.dumps(message).encode() + b"\\n")
asked = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: asked.set())
tell(ready=True)
asked.wait()
tell(step="at work")
"""
_STUBBORN = _READY + "threading.Event().wait()\n"

Make = Callable[[str, str], Child]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    children = []

    def start(name: str, program: str) -> Child:
        child = Child(name, [sys.executable, "-c", program], tmp_path / f"{name}.log")
        children.append(child)
        child.start()
        assert list(child.messages(START_SECONDS))
        return child

    yield start
    for child in children:
        child.stop(0)


def test_stages_end_one_after_the_other_and_are_reported(make: Make) -> None:
    first = [make("cloud", _READY), make("Keystone", _READY)]
    last = make("simulator", _READY)
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        if last.name in text:
            assert [child.pid for child in first] == [None, None]
            assert last.pid is not None

    ending = Ending(say)
    ending.run([first, [last]])
    assert said[0] == "waiting for the cloud and Keystone"
    assert said.index("waiting for the simulator") > 0
    assert last.pid is None
    assert [child.exit_text() for child in first] == ["exit code 0"] * 2
    assert not ending.was_cut_short


def test_what_has_ended_is_not_waited_for(make: Make) -> None:
    child = make("cloud", _READY)
    child.stop()
    said: list[str] = []
    Ending(said.append).run([[child]])
    assert said == []


def test_a_second_signal_cuts_it_short(make: Make) -> None:
    stubborn = make("cloud", _STUBBORN)
    before = signal.getsignal(signal.SIGINT)

    def say(text: str) -> None:
        if text == "at work":
            os.kill(os.getpid(), signal.SIGTERM)  # asked for already: nothing more
            os.kill(os.getpid(), signal.SIGINT)

    ending = Ending(say)
    ending.run([[stubborn]])
    assert ending.was_cut_short
    assert stubborn.exit_text() == "killed by SIGKILL"
    assert signal.getsignal(signal.SIGINT) is before
