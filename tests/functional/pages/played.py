"""Plays a page: carries out the commands of its `console` blocks, and compares what they print.

A block has commands after `$ ` (a shell with an administrator's login) or `# ` (root on a node),
each followed by what it prints. A line `…` there stands for any lines, `…` in a line for any text.
What breaks, and when, is the test's.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.functional.pages.reading import Desk
from tests.pages import ROOT, Block, blocks, placed

SECONDS = 600.0
#: commands that change nothing are repeated until the cloud has noticed what happened
_LOOKS = re.compile(
    r"micronova (audit|doctor|explain|node list|queue list|restore$)|.* (list|show)\b"
)


@dataclass(frozen=True)
class Step:
    """A command, and what the page says that it prints; None: nothing is said of it."""

    command: str
    printed: str | None


def steps(block: Block) -> Iterator[Step]:
    """Yield the commands of a block."""
    text = re.sub(r" \\\n\s+", " ", block.text)
    for part in re.split(r"^(?=[$#] )", text, flags=re.MULTILINE):
        if part.strip():
            command, _, printed = part.partition("\n")
            # An empty line says that nothing is printed.
            yield Step(command[2:].strip(), printed.strip("\n") if printed else None)


@dataclass(frozen=True)
class Played:
    """The `console` blocks below a heading of a page."""

    page: str
    heading: str = ""
    """Empty: all of the page."""
    sentences: tuple[str, ...] = ()

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks."""
        lines = (ROOT / self.page).read_text(encoding="utf-8").splitlines()
        first, last = 0, len(lines)
        if self.heading:
            first = lines.index(self.heading)
            level = self.heading.partition(" ")[0]
            last = next((at for at in _headings(lines, level) if at > first), last)
        return tuple(
            one
            for one in blocks(ROOT / self.page)
            if one.language == "console" and first < one.line <= last
        )


def _headings(lines: Sequence[str], level: str) -> Iterator[int]:
    """Yield where headings of a level, and of those above it, are; root's commands are none."""
    is_code = False
    for at, line in enumerate(lines):
        is_code ^= line.startswith("```")
        marks = line.partition(" ")[0]
        if not is_code and marks and set(marks) == {"#"} and len(marks) <= len(level):
            yield at


def pattern(printed: str) -> re.Pattern[str]:
    """Return what a command must print."""
    found = ""
    for line in printed.splitlines():
        if line.strip() == "…":
            found += r"(?:.*\n)*?"
        else:
            found += ".*?".join(map(re.escape, line.rstrip().split("…"))) + r"[ ]*\n"
    return re.compile(f"(?m)^{found}")


@dataclass
class Player:
    """Somebody who does what a page says."""

    desk: Desk
    environment: Mapping[str, str]
    values: dict[str, str] = field(default_factory=dict)
    """What stands for something of the reader's, and what this one has."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Paths that commands name, and where that is here; what is printed names them as the page."""
    typed: str = ""
    """The secret that the reader enters where a command asks for one."""

    def play(self, played: Played, *only: int) -> None:
        """Carry out the blocks of a section, or those of these numbers."""
        there = played.blocks
        assert there, f"{played.page} has no block below {played.heading}"
        for number in only or range(len(there)):
            for step in steps(there[number]):
                self.carry_out(step)

    def carry_out(self, step: Step) -> None:
        """Carry out a command until it prints what the page says. Raises AssertionError."""
        command = placed(self._filled(step.command), self.places)
        if step.printed is None:
            self.desk.run(command, self.environment, self.typed)
            return
        printed = self._filled(step.printed)
        wanted, until = pattern(printed), time.monotonic() + SECONDS
        while True:
            said = self.desk.run(f"{{ {command} ; }} 2>&1 || true", self.environment, self.typed)
            if wanted.search(said) if printed else not said.strip():
                return
            if time.monotonic() > until or not _LOOKS.match(command):
                raise AssertionError(f"$ {command}\n{said}\n--- the page says\n{printed}")
            time.sleep(0.5)

    def _filled(self, text: str) -> str:
        for name, value in self.values.items():
            text = text.replace(name, value)
        return text
