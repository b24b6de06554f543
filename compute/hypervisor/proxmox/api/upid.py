"""Task ids: ``UPID:node:pid:pstart:starttime:type:id:user[!token]:``."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FORM = re.compile(
    r"UPID:(?P<node>[^:]+):(?P<pid>[0-9A-F]{8}):(?P<pstart>[0-9A-F]{8,9}):(?P<start>[0-9A-F]{8}):"
    r"(?P<kind>[^:]+):(?P<subject>[^:]*):(?P<who>[^:]+):"
)


@dataclass(frozen=True)
class Upid:
    """The parts of a task id."""

    text: str
    node: str
    start: int
    """Seconds since the epoch, by the node's clock."""
    kind: str
    subject: str
    """What it works on: for a clone, the source's VMID; for a deleted disk, ``vmid@storage``."""
    who: str
    """``user@realm`` or ``user@realm!token``."""

    def concerns(self, vmid: int) -> bool:
        """Return whether it works on a VM, or deletes one of its disks (``imgdel``)."""
        return self.subject.partition("@")[0] == str(vmid)


def parse(text: str) -> Upid | None:
    """Return the parts, or None when the text is no task id."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    return Upid(
        text,
        match["node"],
        int(match["start"], 16),
        match["kind"],
        match["subject"],
        match["who"],
    )
