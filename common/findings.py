"""What a check of an installation finds: what it is, why it matters, and what mends it."""

from __future__ import annotations

import enum
import logging
from collections.abc import Iterable
from dataclasses import dataclass


class Level(enum.StrEnum):
    """How much a finding matters."""

    BROKEN = "broken"  #: servers can't be built, or not there
    WARNING = "warning"  #: it works, and something doesn't, or won't for long
    NOTE = "note"  #: nothing is wrong: a choice to be aware of, and what changes it

    @property
    def severity(self) -> int:
        """The level of a log line about it."""
        return logging.INFO if self is Level.NOTE else logging.WARNING


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong."""

    code: str
    """Stable name, as in `docs/doctor.md`."""
    level: Level
    where: str
    """Cluster, node, or service."""
    what: str
    """A sentence."""
    why: str
    """What doesn't work, or will not: a sentence."""
    lines: tuple[str, ...] = ()
    """What mends it: commands for root on a node of the cluster, or here; or, after a `#`, an
    option of the configuration, as `# [group] name = value`."""

    def __str__(self) -> str:
        purpose = "change" if self.level is Level.NOTE else "mend"
        mend = f" To {purpose} it: {in_line(self.lines)}" if self.lines else ""
        return f"{self.where}: {self.what} {self.why}{mend}"


def in_line(lines: Iterable[str]) -> str:
    """Return lines that mend something as one: commands, and last the options, as a comment."""
    listed = list(lines)
    commands = " && ".join(line for line in listed if not line.startswith("#"))
    return " ".join([*([commands] if commands else []), *(x for x in listed if x.startswith("#"))])


def exit_code(found: Iterable[Finding]) -> int:
    """Return 0 where nothing is wrong, 1 where all works with warnings, 2 where it doesn't."""
    levels = {one.level for one in found}
    return 2 if Level.BROKEN in levels else int(Level.WARNING in levels)
