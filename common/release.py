"""The release that a process is of."""

from __future__ import annotations

import re
from importlib import metadata

PROGRAM = "micronova"


def _installed() -> str:
    try:
        return metadata.version(PROGRAM)
    except metadata.PackageNotFoundError:
        return "0"  # it runs from its tree


# Read as the process starts: the package may be upgraded under it.
VERSION = _installed()


def is_older(version: str, than: str = VERSION) -> bool:
    """Return whether a release is older than another one; an unknown release is.

    >>> is_older("1.9.0", "1.10.0"), is_older("1.10.0", "1.10.0"), is_older("", "1.0.0")
    (True, False, True)
    """
    return _numbers(version) < _numbers(than)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(one) for one in re.findall(r"[0-9]+", version))
