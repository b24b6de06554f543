"""The client's logging: little by default, and no secret even in all of it."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, TextIO

from cli.errors import sentence

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


def errors_as_sentences(record: logging.LogRecord) -> bool:
    """Replace the errors among what a message shows by their sentences; a logging filter.

    Commands of python-openstackclient that act on several things log each failure.
    """
    if isinstance(record.args, Mapping):
        record.args = {name: _shown(value) for name, value in record.args.items()}
    elif record.args:
        record.args = tuple(map(_shown, record.args))
    return True


def _shown(value: Any) -> Any:
    return sentence(value) if isinstance(value, Exception) else value


def configure(stream: TextIO, level: int, log_file: str | None) -> None:
    """Send what is at ``level`` or above to the stream, and everything to the file, if any."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler.formatter, Masking):
            root.removeHandler(handler)
    console = logging.StreamHandler(stream)
    console.setLevel(level)
    console.addFilter(errors_as_sentences)
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
