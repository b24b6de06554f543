"""Standard output and error of a command."""

from __future__ import annotations

import io
import sys


def write_anything() -> None:
    """Write what the terminal's encoding can't show as escapes, rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
