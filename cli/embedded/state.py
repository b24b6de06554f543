"""The state directory: where it is, whether it can be used, and that only one cloud uses it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from common.errors import ConfigurationError


def default_state_dir() -> Path:
    """Return where state is kept unless told otherwise."""
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "micronova"


@contextlib.contextmanager
def taken(folder: Path) -> Iterator[Path]:
    """Make the state directory ours alone, as an absolute path.

    Raises ConfigurationError when it can't be written, or another cloud runs in it.
    """
    folder = folder.expanduser().absolute()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "log").mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(folder / "up.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigurationError(
            f"The state directory {folder} can't be written: {reason}. "
            "Choose another with --state-dir."
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            raise ConfigurationError(
                f"A cloud runs in {folder} already (process {holder or 'unknown'})."
            ) from error
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield folder
    finally:
        os.close(descriptor)
