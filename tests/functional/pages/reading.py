"""A reader of the pages: runs the blocks that they print, in a shell, as they are printed.

A ``Reading`` is data: a page's blocks in the page's order, and what the reader has before them.
``openstack`` and ``micronova`` are forked instead of started (``tests.functional.programs``), and
``pveum``, ``pvesm``, ``pvesh`` and ``qm`` ask the simulator as root
(``tests.fixtures.root_shell``).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import socket
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import requests

from tests.fixtures.root_shell import RootShell
from tests.functional import programs
from tests.pages import ROOT, Block, blocks, inline_commands, inline_node_commands

SECONDS = 300.0
LAST = ".printed"
"""The file in the reader's home that has what the last command printed."""


@dataclass(frozen=True)
class Reading:
    """A page's blocks, in the page's order, and what a reader has before them."""

    page: str
    having: tuple[str, ...] = ()
    """A text of each block."""
    who: str = "micronova-demo"
    before: str = ""
    after: str = ""
    """What looks at the effect, and leaves nothing of theirs."""
    values: tuple[tuple[str, str], ...] = ()
    """What stands for something of the reader's, and what this one has."""
    language: str = ""
    sentences: tuple[str, ...] = ()
    """Commands that stand in the page's sentences; they follow the blocks."""
    together: bool = False
    """Whether each block is one script: a loop, a variable."""
    typed: str = ""
    """The secret that the reader enters where a command asks for one."""

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks that it reads."""
        return tuple(found(self.page, self.language, text) for text in self.having)

    def texts(self) -> Iterator[str]:
        """Yield its blocks with what this reader has in place of what stands for it."""
        for block in self.blocks:
            yield self.filled(block.text)

    def commands(self) -> Iterator[str]:
        """Yield what is run, one after the other."""
        yield from lines(self.before)
        for text in self.texts():
            yield from [text] if self.together else lines(text)
        page = ROOT / self.page
        known = {*inline_commands(page), *inline_node_commands(page)}
        for text in self.sentences:
            assert text in known, f"{self.page} has no `{text}`"
            yield self.filled(text)
        yield from lines(self.after)

    def filled(self, text: str) -> str:
        """Return a text of the page as this reader enters it."""
        for printed, value in self.values:
            text = text.replace(printed, value)
        return text

    def __str__(self) -> str:
        """Name it for a list of tests."""
        return f"{self.page}-{(*self.having, *self.sentences)[0]}"


def found(page: str, language: str, having: str) -> Block:
    """Return the one block of a page and language that has some text."""
    [one] = [one for one in blocks(ROOT / page) if one.language == language and having in one.text]
    return one


def lines(text: str) -> list[str]:
    """The commands of a block without what stands beside them in words."""
    lines = re.sub(r"\s*\\\n\s*", " ", text).splitlines()
    return [line.strip().partition("  ")[0] for line in lines if line.strip()]


def settings(text: str) -> list[str]:
    """Return the lines of an `ini` block as `micronova up --set` takes them."""
    section, made = "DEFAULT", []
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            name, _, value = line.partition("=")
            made.append(f"{section}.{name.strip()}={value.strip()}")
    return made


# --- the shell

_PROGRAM = """#!{python} -ISE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asked:
    asked.connect({door!r})
    text = json.dumps([{name!r}, sys.argv[1:], dict(os.environ), os.getcwd()])
    socket.send_fds(asked, [text.encode()], [0, 1, 2])
    sys.exit(int(asked.recv(16)))
"""


Act: TypeAlias = Callable[[Sequence[str]], bool]
"""Takes a program's arguments; returns whether it did what they say."""


class Desk:
    """A reader's home, with the programs that are installed there."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._programs = home / ".programs"
        self._programs.mkdir()
        door = self._programs / "door"
        self._door = str(door)
        self._acts: dict[str, Act] = {}
        for name in ("openstack", "micronova"):
            self._write(name)
        programs.start()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(door))
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()
        self.node: Mapping[str, str] = {}
        """What root's programs need on a node of the cluster."""

    def _write(self, name: str) -> None:
        file = self._programs / name
        file.write_text(_PROGRAM.format(python=sys.executable, door=self._door, name=name))
        file.chmod(0o755)

    def install(self, name: str, act: Act) -> None:
        """Install a program that the test carries out, such as to restart its servers."""
        self._acts[name] = act
        self._write(name)

    def remove(self, name: str) -> None:
        """Have it there no more: the node's own is found again."""
        (self._programs / name).unlink()
        del self._acts[name]

    def on_a_node(self, url: str, folder: Path) -> None:
        """Have root's programs ask the cluster of a simulator, whose state is in `folder`."""
        root = RootShell(url, folder / "ca.pem", folder / "root-password", self.home / ".node")
        self.node = root.environment | {"PVE_NODE": ""}
        self._simulator = (url, str(folder / "ca.pem"))

    def control(self, method: str, door: str, /, **body: object) -> object:
        """Ask the control API of the simulator, as the one who breaks something."""
        url, ca = self._simulator
        answer = requests.request(method, f"{url}/_sim/{door}", json=body, verify=ca, timeout=30)
        answer.raise_for_status()
        return answer.json()

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return what the shell's commands are run with."""
        own = (self._programs, self.home / ".node", self.home / ".venv" / "bin")
        path = ":".join([*map(str, own), os.environ["PATH"]])
        return {**environment, **self.node, "HOME": str(self.home), "PATH": path}

    def run(self, text: str, environment: Mapping[str, str], typed: str = "") -> str:
        """Run what the reader enters, which must succeed; return what is printed."""
        with _terminal(typed) as stdin:
            done = subprocess.run(
                ["bash", "-ec", text],
                cwd=self.home,
                env=self.environment(environment),
                stdin=stdin,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        (self.home / LAST).write_text(done.stdout)
        return done.stdout

    def close(self) -> None:
        """End what serves the programs."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                asked, _ = self._listener.accept()
                threading.Thread(target=_answer, args=(asked, self._acts), daemon=True).start()


def _answer(asked: socket.socket, acts: Mapping[str, Act]) -> None:
    # Who asks may be ended in the middle.
    with contextlib.suppress(BrokenPipeError), asked:
        text, (stdin, *outputs), _, _ = socket.recv_fds(asked, 1 << 18, 3)
        name, words, environment, folder = json.loads(text)
        try:
            if act := acts.get(name):
                asked.send(str(int(not act(words))).encode())
                return
            done = programs.run(name, words, environment, SECONDS, folder=folder, stdin=stdin)
            for output, printed in zip(outputs, (done.stdout, done.stderr), strict=True):
                with open(output, "wb", closefd=False) as file:
                    file.write(printed.encode())
            asked.send(str(done.returncode).encode())
        finally:
            for one in (stdin, *outputs):
                os.close(one)


@contextlib.contextmanager
def _terminal(secret: str) -> Iterator[int]:
    """Give a terminal on which this is entered each time it is asked for, and else nothing."""
    if not secret:
        yield subprocess.DEVNULL
        return
    ours, theirs = os.openpty()
    ended = threading.Event()
    person = threading.Thread(target=_enter, args=(secret, ours, theirs, ended))
    person.start()
    try:
        yield theirs
    finally:
        ended.set()
        person.join()
        os.close(ours)
        os.close(theirs)


def _enter(secret: str, ours: int, theirs: int, ended: threading.Event) -> None:
    """Enter a secret when the echo is off: what is typed earlier is thrown away by the prompt."""
    while not ended.wait(0.02):
        is_asked = not termios.tcgetattr(theirs)[3] & termios.ECHO
        [waiting] = struct.unpack("i", fcntl.ioctl(theirs, termios.FIONREAD, bytes(4)))
        if is_asked and not waiting:
            os.write(ours, f"{secret}\n".encode())
