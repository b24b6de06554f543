"""Room on the disk of the spool: what uploads leave free, and what a delete finds on a full one.

The databases of a cloud in one folder lie on the same disk, and so may the logs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from common.errors import TooLarge
from common.log import logger

LOG = logger(__name__)

RESERVE_BYTES, RESERVE_SHARE = 1 << 30, 0.05
#: as much as a delete needs, and what other writers take in the meantime
BALLAST_BYTES = 16 << 20

Measure = Callable[[Path], tuple[int, int]]
"""Return the bytes of a disk: all, and those that are free."""


def _measured(folder: Path) -> tuple[int, int]:
    found = shutil.disk_usage(folder)
    return found.total, found.free


class Room:
    """The disk on which a folder lies. The ballast is a file beside the folder."""

    def __init__(self, folder: Path, reserve_mib: int = -1, measure: Measure = _measured) -> None:
        """``reserve_mib``: what is left free; negative: the larger of 1 GiB and 5 %."""
        self._folder, self._reserve_mib, self._measure = folder, reserve_mib, measure
        self._ballast = folder.with_name(f"{folder.name}.ballast")

    def require(self, size_bytes: int) -> None:
        """Raise TooLarge unless so much more leaves the reserve free."""
        try:
            total, free = self._measure(self._folder)
        except OSError:
            return  # the write that follows fails with the reason
        if free - size_bytes < self._reserve(total):
            raise TooLarge("Image storage media is full.")

    def _reserve(self, total: int) -> int:
        if self._reserve_mib >= 0:
            return self._reserve_mib << 20
        return max(RESERVE_BYTES, int(total * RESERVE_SHARE))

    def lay_ballast(self) -> None:
        """Take room that ``drop_ballast`` gives back, where there is plenty."""
        try:
            if self._ballast.exists() or self._measure(self._folder)[1] < 4 * BALLAST_BYTES:
                return
            number = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(number, 0, BALLAST_BYTES)
            finally:
                os.close(number)
        except OSError as error:
            LOG.info("No room is kept for deletes on a full disk: %s", error)

    def drop_ballast(self) -> None:
        """Give the room back if the disk is full, so that what frees more can be written."""
        try:
            if self._measure(self._folder)[1] < BALLAST_BYTES:
                self._ballast.unlink(missing_ok=True)
        except OSError as error:
            LOG.warning("The room that is kept for deletes can't be freed: %s", error)
