"""Files only their owner may read, replaced as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def private_directory(path: Path) -> Path:
    """Return the directory `path`, created with mode 0700 where it is missing."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def write_private(path: Path, text: str) -> None:
    """Replace the file `path` by `text`, mode 0600, atomically and durably.

    A reader sees the old content or the new one, whatever dies on the way.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:  # mkstemp: mode 0600
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in the directory `path` durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
