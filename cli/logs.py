"""The client's logging: little by default, and no secret even in all of it."""

from __future__ import annotations

import logging
import re
from typing import TextIO

_CONSOLE = "%(message)s"
_CONSOLE_ALL = "%(levelname)s %(name)s: %(message)s"
_FILE = "%(asctime)s %(levelname)s %(name)s: %(message)s"

_KEYS = "adminPass|admin_password|password|secret|private_key|user_data|token"
_SECRET = re.compile(
    rf"""(["']?(?:\w*[_-])?(?:{_KEYS})["']?\s*[:=]\s*)(["'])(?:\\.|(?!\2).)*\2""", re.IGNORECASE
)


def masked(text: str) -> str:
    """Return the text with the values of secrets replaced.

    >>> masked('{"adminPass": "x1", "name": "a"}')
    '{"adminPass": "***", "name": "a"}'
    """
    return _SECRET.sub(r"\1\2***\2", text)


class Masking(logging.Formatter):
    """A formatter whose output holds no secret."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, masked."""
        return masked(super().format(record))


def configure(stream: TextIO, level: int, log_file: str | None) -> None:
    """Send what is at ``level`` or above to the stream, and everything to the file, if any."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler.formatter, Masking):
            root.removeHandler(handler)
    console = logging.StreamHandler(stream)
    console.setLevel(level)
    console.setFormatter(Masking(_CONSOLE_ALL if level <= logging.DEBUG else _CONSOLE))
    root.addHandler(console)
    root.setLevel(level)
    # it warns of each failure that it then raises, which is shown once
    quiet = logging.ERROR if level == logging.WARNING else logging.NOTSET
    logging.getLogger("keystoneauth").setLevel(quiet)
    if log_file:
        file = logging.FileHandler(log_file)
        file.setFormatter(Masking(_FILE))
        root.addHandler(file)
        root.setLevel(logging.DEBUG)
