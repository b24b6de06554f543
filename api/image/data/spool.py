"""Uploaded data on this host, from the first byte until every cluster has them.

``<image>.part`` is an upload in progress, locked by the process that writes it; an unlocked one
belongs to a dead upload and is deleted. ``<image>.<hash of a token>`` is complete: agents, which
have the token, fetch it. It is deleted when no operation needs it any more.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from api.image.data import formats
from api.image.data.room import Room
from common.errors import Conflict, NotFound, TooLarge, Unavailable
from common.log import logger
from web.file_parts import FilePart

LOG = logger(__name__)

#: seconds between two looks for files that are not needed any more
TIDY_SECONDS = 30.0
#: how long a conductor that did not answer may still take complete data
DOUBT_SECONDS = 300.0

_PART = ".part"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

Needed = Callable[[Collection[str]], Collection[str]]
"""Of these images, those whose data a cluster still waits for."""


class Upload:
    """An upload in progress: the file, its length and its hashes."""

    def __init__(
        self, file: BinaryIO, most_bytes: int, require_room: Callable[[int], None]
    ) -> None:
        """``require_room``: raises TooLarge unless there is room for so many bytes more."""
        self.file, self._most_bytes, self._require_room = file, most_bytes, require_room
        self.size_bytes = 0
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._sha512 = hashlib.sha512()
        self.token = secrets.token_urlsafe(32)
        self._check: Callable[[], None] | None = None
        self._check_bytes = self._check_at = 0
        self.inspected = formats.Inspected(())
        self.is_needed = False
        """Whether the data are retained when the upload has ended."""

    def at_every(self, size_bytes: int, check: Callable[[], None]) -> None:
        """Call this after so many bytes each time, which may raise what ends the upload."""
        self._check, self._check_bytes = check, size_bytes
        self._check_at = size_bytes

    @property
    def md5(self) -> str:
        """The MD5 of what was written, hexadecimal."""
        return self._md5.hexdigest()

    @property
    def sha512(self) -> str:
        """The SHA-512 of what was written, hexadecimal."""
        return self._sha512.hexdigest()

    def take(self, pieces: Iterable[bytes]) -> None:
        """Write all of these, and see what they are. Raises as ``write``."""
        self.inspected = formats.Inspected(pieces)
        for data in self.inspected:
            self.write(data)

    def write(self, data: bytes) -> None:
        """Append. Raises TooLarge over the limit, and where the disk is full."""
        self.size_bytes += len(data)
        if self.size_bytes > self._most_bytes:
            raise TooLarge("The incoming image is too large.")
        self._require_room(len(data))
        if self._check is not None and self.size_bytes >= self._check_at:
            self._check_at = self.size_bytes + self._check_bytes
            self._check()
        left = memoryview(data)
        try:
            while left:
                left = left[self.file.write(left) :]
        except OSError as error:
            if error.errno in _FULL:
                raise TooLarge("Image storage media is full.") from error
            raise
        self._md5.update(data)
        self._sha512.update(data)


class Spool:
    """The directory; shared by all processes of the API on this host."""

    def __init__(
        self, folder: str, most_bytes: int, needed: Needed, reserve_mib: int = -1
    ) -> None:
        self._folder, self._needed = Path(folder), needed
        self.room = Room(self._folder, reserve_mib)
        self.most_bytes = most_bytes
        self._lock = threading.Lock()
        self._tidying = False
        self._again = threading.Event()
        self._looked = False

    @contextlib.contextmanager
    def upload(self, image_id: str) -> Iterator[Upload]:
        """Write data; at the end they are deleted unless needed. Raises Conflict for a second
        upload of the image, Unavailable where the directory can't be used.

        The file is locked until the end, so that no process treats it as a dead upload.
        """
        self._make()
        part = self._folder / f"{image_id}{_PART}"
        with _locked(part) as file:
            if file is None:
                raise Conflict(
                    "Image status transition from saving to saving is not allowed: "
                    "another upload is under way."
                )
            file.truncate()
            upload = Upload(file, self.most_bytes, self.room.require)
            try:
                yield upload
            finally:
                if not upload.is_needed:
                    self._discard(part, self._complete(image_id, upload.token))
                self.watch()

    def _discard(self, part: Path, complete: Path) -> None:
        """Remove what was written, unless the record needs it although the answer was lost."""
        part.unlink(missing_ok=True)
        if not complete.exists() or _may_be_taken(complete):
            return
        try:
            needed = self._needed({_image_of(complete)})
        except Exception:
            LOG.exception(
                "Upload %s: can't determine whether it is needed; not deleted.", complete.name
            )
            return
        if not needed:
            complete.unlink(missing_ok=True)

    def complete(self, image_id: str, upload: Upload) -> None:
        """Let agents fetch an upload.

        The data are not flushed to the disk first: the agent that fetches them compares the hash.
        """
        part = self._folder / f"{image_id}{_PART}"
        part.rename(self._complete(image_id, upload.token))

    def doubt(self, image_id: str, upload: Upload) -> None:
        """Retain complete data for a while if it is unknown whether the conductor accepted them.

        Their modification time is set to the end of that period, which all processes respect.
        """
        until = time.time() + DOUBT_SECONDS
        with contextlib.suppress(FileNotFoundError):
            os.utime(self._complete(image_id, upload.token), (until, until))

    def read(self, image_id: str, token: str, first: int, last: int) -> tuple[bytes, int]:
        """Return bytes of complete data, and the length of all. Raises NotFound.

        ``first`` and ``last`` count from 0, both inclusive; there may be less than asked for.
        """
        try:
            with self._complete(image_id, token).open("rb", buffering=0) as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(first)
                return file.read(max(0, min(last, size - 1) - first + 1)), size
        except OSError as error:
            raise NotFound(f"There are no data of image {image_id} here.") from error

    def being_written(self) -> dict[str, int]:
        """Return how many bytes of each image have come whose upload hasn't ended."""
        found = {}
        for path in self._files():
            if path.suffix == _PART:
                with contextlib.suppress(FileNotFoundError):
                    found[_image_of(path)] = path.stat().st_size
        return found

    def received(self, image_id: str) -> int | None:
        """Return how many bytes of an upload to this host have come; None: there is none now."""
        try:
            return (self._folder / f"{image_id}{_PART}").stat().st_size
        except OSError:
            return None

    def find(self, image_id: str) -> FilePart | None:
        """Return the complete data of an image, if they are on this host."""
        for path in self._files():
            if _image_of(path) == image_id and path.suffix != _PART:
                with contextlib.suppress(FileNotFoundError):
                    return FilePart(path)
        return None

    def _make(self) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            LOG.error("There is no directory for uploads (spool_dir): %s", error)
            raise Unavailable("Images can't be uploaded now.") from error
        self.room.lay_ballast()

    # --- removal

    def watch(self) -> None:
        """Remove files that aren't needed, in a thread that runs until none is left."""
        self._again.set()
        with self._lock:
            self._looked = True
            if self._tidying or not self._files():
                return
            self._tidying = True
        threading.Thread(target=self._watch, name="image-spool", daemon=True).start()

    def watch_once(self) -> None:
        """Call ``watch`` once in a process, to remove the files of dead uploads."""
        if not self._looked:
            self.watch()

    def tidy(self) -> int:
        """Remove unlocked files that no operation needs; return how many files are left."""
        files = self._files()
        complete = [path for path in files if path.suffix != _PART]
        needed = self._needed({_image_of(path) for path in complete}) if complete else ()
        for path in files:
            if path in complete and _may_be_taken(path):
                continue
            if path.suffix == _PART or _image_of(path) not in needed:
                self._remove_unlocked(path)
        return len(self._files())

    def _remove_unlocked(self, path: Path) -> None:
        """Remove an unlocked file if it is still not needed: its upload may just have ended."""
        with contextlib.suppress(FileNotFoundError), _locked(path, 0) as file:
            if file is None or (path.suffix != _PART and self._needed({_image_of(path)})):
                return
            path.unlink(missing_ok=True)

    def _watch(self) -> None:
        while True:
            self._again.clear()
            try:
                left = self.tidy()
            except Exception:
                LOG.exception("The spool of uploads could not be tidied.")
                left = 1
            with self._lock:
                if not left and not self._files():
                    self._tidying = False
                    return
            self._again.wait(TIDY_SECONDS)

    def _files(self) -> list[Path]:
        try:
            return [path for path in self._folder.iterdir() if path.name.count(".") == 1]
        except FileNotFoundError:
            return []

    def _complete(self, image_id: str, token: str) -> Path:
        return self._folder / f"{image_id}.{hashlib.sha256(token.encode()).hexdigest()}"


def _may_be_taken(path: Path) -> bool:
    """Return whether complete data are kept for somebody who didn't answer; see ``doubt``."""
    try:
        return path.stat().st_mtime > time.time()
    except FileNotFoundError:
        return False


def _image_of(path: Path) -> str:
    return path.name.partition(".")[0]


@contextlib.contextmanager
def _locked(path: Path, flags: int = os.O_CREAT) -> Iterator[BinaryIO | None]:
    """Open and lock a file; None: another process has locked it."""
    while True:
        number = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
        with os.fdopen(number, "r+b", buffering=0) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
                return
            if _is_still(path, file):
                yield file
                return
            # It was removed between opening and locking.


def _is_still(path: Path, file: object) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    mine = os.fstat(file.fileno())  # type: ignore[attr-defined]
    return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)
