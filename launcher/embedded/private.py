"""Permissions of the state directory: only its owner may read or change what is in it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from common.errors import ConfigurationError

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def make_private(folder: Path) -> list[str]:
    """Remove all permissions of other users in `folder`; return a line for what was changed.

    Raises ConfigurationError where another user owns the folder or a file in it, or could replace
    them: their content can't be trusted then.
    """
    folder = folder.resolve()
    for parent in folder.parents:
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise ConfigurationError(
                f"The state directory {folder} is in {parent}, where everybody can exchange it: "
                f"choose another with --state-dir, or run chmod o-w {parent}."
            )
    was_open = folder.stat().st_mode & _OTHERS_WRITE
    found = [path for path in _below(folder) if _is_mended(path)]
    if was_open:
        return [
            f"{folder} could be written by others: now it can't; look whether all in it is yours"
        ]
    if not found:
        return []
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return [f"{found[0]}{more} could be read by others; now only by the owner"]


def _below(folder: Path) -> Iterator[Path]:
    yield folder
    for directory, names, files in os.walk(folder):
        for name in (*names, *files):
            yield Path(directory) / name


def _is_mended(path: Path) -> bool:
    """Close a file to others; return whether it was open. Raises ConfigurationError."""
    try:
        status = path.lstat()
    except FileNotFoundError:  # a database's journal, removed since the folder was listed
        return False
    if status.st_uid != os.geteuid():
        raise ConfigurationError(
            f"{path} belongs to another user (uid {status.st_uid}): it isn't trusted. Remove it, "
            "or choose another state directory with --state-dir."
        )
    if stat.S_ISLNK(status.st_mode) or not status.st_mode & _OTHERS:
        return False
    path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)
    return True
