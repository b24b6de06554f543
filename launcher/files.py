"""What a machine needs beside the programs: units, gunicorn's settings, samples, alerts.

They lie in ``etc/`` of the tree, and in a wheel beside the parts. Written to a folder they name
the programs of this very installation.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from common.process.child import ROOT

_SOURCE = ROOT / "etc"
_PROGRAMS = "/opt/micronova/bin/"
"""Where the files have the programs, as docs/install.md installs them."""

_UNITS = frozenset({".service", ".target"})
_LEFT_OUT = frozenset({".pyc"})


class OthersAreThere(Exception):
    """Files with another text would be replaced."""

    def __init__(self, paths: list[Path]) -> None:
        super().__init__(", ".join(map(str, paths)))


def write(folder: Path, replace: bool = False) -> list[Path]:
    """Write all files into a folder, which is made; return their paths in it.

    A file that has the same text already is left alone.

    :param replace: whether files with another text are replaced
    :raises OthersAreThere: there are some; nothing was written.
    :raises OSError: the folder or a file can't be written.
    """
    found = dict(texts())
    others = [folder / name for name, text in found.items() if _differs(folder / name, text)]
    if others and not replace:
        raise OthersAreThere(others)
    for name, text in found.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path in others:
            path.write_text(text, encoding="utf-8")
    return list(found)


def texts() -> Iterator[tuple[Path, str]]:
    """Yield name and text of each file; units name the programs of this installation."""
    programs = f"{Path(sys.executable).parent}/"
    for path in sorted(_SOURCE.rglob("*")):
        if path.is_file() and path.suffix not in _LEFT_OUT:
            text = path.read_text(encoding="utf-8")
            unit = path.suffix in _UNITS
            yield path.relative_to(_SOURCE), text.replace(_PROGRAMS, programs) if unit else text


def _differs(path: Path, text: str) -> bool:
    return path.exists() and path.read_bytes() != text.encode()
