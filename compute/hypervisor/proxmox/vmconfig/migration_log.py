"""How far a migration is, by the lines of its task's log. Pure but for what it has read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_SIZE = r"([\d.]+) ?([KMGT]i?)?B"
#: ``migration active, transferred 384.0 MiB of 512.0 MiB VM-state, 144.8 MiB/s``
_MEMORY = re.compile(rf"transferred {_SIZE} of {_SIZE} VM-state")
#: ``mirror-scsi0: transferred 1.0 GiB of 2.0 GiB (50.00%) in 4s``; offline: without its name
_DISK = re.compile(rf"(?:mirror-(\S+): )?transferred {_SIZE} of {_SIZE} \([\d.]+%\)")
#: ``volume 'local:580/…' is 'local:580/…' on the target``: a copy is done, or begins if live
_COPY = re.compile(r"volume '([^']+)' is '([^']+)' on the target")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class MigrationLog:
    """What the lines read so far say."""

    def __init__(self) -> None:
        self.lines = 0
        self.copies: dict[str, str] = {}
        """Volumes on the source, and their copies on the target."""
        self._disks: dict[str, tuple[int, int]] = {}
        self._memory = (0, 0)

    def read(self, lines: Iterable[str]) -> None:
        """Take over the lines that follow."""
        for line in lines:
            self.lines += 1
            if (match := _MEMORY.search(line)) is not None:
                self._memory = _bytes(match[1], match[2]), _bytes(match[3], match[4])
            elif (match := _DISK.search(line)) is not None:
                done, total = _bytes(match[2], match[3]), _bytes(match[4], match[5])
                self._disks[match[1] or str(len(self.copies))] = done, total
            elif (match := _COPY.search(line)) is not None:
                self.copies[match[1]] = match[2]

    def progress(self, seconds: float) -> Mapping[str, int]:
        """Return bytes, percent and, by the rate so far, seconds left; empty: nothing known."""
        disk = sum(done for done, _ in self._disks.values())
        disk_total = sum(total for _, total in self._disks.values())
        done, total = disk + self._memory[0], disk_total + self._memory[1]
        if not total:
            return {}
        found = {
            "memory_bytes": self._memory[0],
            "memory_total_bytes": self._memory[1],
            "disk_bytes": disk,
            "disk_total_bytes": disk_total,
            "percent": min(100, done * 100 // total),
        }
        if done and seconds > 0:
            found["seconds_left"] = max(0, round((total - done) * seconds / done))
        return found


def _bytes(number: str, unit: str | None) -> int:
    return int(float(number) * _UNITS[(unit or "")[:1]])
