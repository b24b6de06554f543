"""The state directory: where it is, whether it can be used, and that only one cloud uses it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from common.errors import ConfigurationError
from launcher.embedded.private import make_private

# A link of that name isn't ours.
_OPEN_LOCK = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


def default_state_dir() -> Path:
    """Return the default state directory."""
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "micronova"


@contextlib.contextmanager
def taken(folder: Path, say: Callable[[str], None] = lambda text: None) -> Iterator[Path]:
    """Make the state directory ours alone, as an absolute path.

    `say` is called with what others could do in it until now. Raises ConfigurationError when it
    can't be named or written, isn't ours, or another cloud runs in it.
    """
    folder = folder.expanduser().absolute()
    _require_text(folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "log").mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(folder / "up.lock", _OPEN_LOCK, 0o600)
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
        for text in make_private(folder):
            say(text)
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield folder
    finally:
        os.close(descriptor)


def _require_text(folder: Path) -> None:
    """Raise ConfigurationError for a path that can't stand in configuration files, as UTF-8."""
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(
            f"The state directory {str(folder)!a} has characters that the locale doesn't "
            "have: set LC_ALL=C.UTF-8, or choose another with --state-dir."
        ) from error
