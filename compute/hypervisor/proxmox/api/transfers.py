"""The progress of a task's copy, by the lines of its log. Pure but for the lines read so far."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

#: kinds of tasks that may copy disks or memory, and then say in their logs how much
COPYING = frozenset({"qmclone", "qmconfig", "qmcreate", "qmigrate", "qmmove"})

_SIZE = r"([0-9.]+) ?([KMGT]i?)?B"
#: ``migration active, transferred 384.0 MiB of 512.0 MiB VM-state, 144.8 MiB/s``
_MEMORY = re.compile(rf"transferred {_SIZE} of {_SIZE} VM-state")
#: ``mirror-scsi0: transferred 1.0 GiB of 2.0 GiB (50.00%) in 4s``; of a stopped VM: without name
_DISK = re.compile(rf"(?:mirror-(\S+): )?transferred {_SIZE} of {_SIZE} \([0-9.]+%\)")
#: ``17104896 bytes (17 MB, 16 MiB) copied, 1 s, 17 MB/s``: dd, of a stopped VM's volume
_DD = re.compile(r"^(?:[0-9-]+ [0-9:]+ )?([0-9]+) bytes \(.*\) copied, ")
#: ``volume 'local:580/…' is 'local:580/…' on the target``: a copy is done, or begins if live
_NEXT = re.compile(r"volume '[^']+' is '[^']+' on the target")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Transfers:
    """What the lines read so far say.

    ``expected_bytes`` is what a stopped VM's volumes have together: only their sizes say it.
    """

    def __init__(self, expected_bytes: int = 0) -> None:
        self.lines = 0
        self._expected = expected_bytes
        self._disks: dict[str, tuple[int, int]] = {}
        self._unnamed = 0
        self._memory = (0, 0)
        self._dd, self._dd_before = 0, 0

    def read(self, lines: Iterable[str]) -> None:
        """Take over the lines that follow."""
        for line in lines:
            self.lines += 1
            if (match := _MEMORY.search(line)) is not None:
                self._memory = _bytes(match[1], match[2]), _bytes(match[3], match[4])
            elif (match := _DISK.search(line)) is not None:
                self._disk(match[1], _bytes(match[2], match[3]), _bytes(match[4], match[5]))
            elif (match := _DD.search(line)) is not None:
                # Both ends of the copy report their bytes; neither number decreases.
                self._dd = max(self._dd, int(match[1]))
            elif _NEXT.search(line) is not None:
                self._dd_before += self._dd
                self._dd = 0

    def progress(self, seconds: float) -> Mapping[str, int]:
        """Return bytes, percent and, by the rate so far, seconds left; empty: nothing known."""
        copied = self._dd_before + self._dd
        disk = sum(done for done, _ in self._disks.values()) + copied
        disk_total = sum(total for _, total in self._disks.values())
        disk_total += max(copied, self._expected) if copied else 0
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

    def _disk(self, name: str | None, done: int, total: int) -> None:
        if name is None:
            # One after the other: a smaller number is the next disk's.
            before = self._disks.get(str(self._unnamed), (0, 0))[0]
            self._unnamed += done < before
            name = str(self._unnamed)
        self._disks[name] = done, total


def _bytes(number: str, unit: str | None) -> int:
    return int(float(number) * _UNITS[(unit or "")[:1]])
