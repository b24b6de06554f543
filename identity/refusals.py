"""Refusals of requests in Keystone's log: one line each.

Keystone logs most of what it answers 4xx as an error, with a traceback of some 35 lines, also to
clients that have no token. The line says what was refused; what fails inside has its traceback.
"""

from __future__ import annotations

import logging

#: the loggers of Keystone that answer exceptions
_LOGGERS = ("keystone.server.flask.application", "keystone.api.os_oauth2")


def log_in_one_line() -> None:
    """Have refusals logged as one line."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_one_line)


def _one_line(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    code = getattr(error, "code", None)
    if isinstance(code, int) and 400 <= code < 500:
        record.exc_info = None
        record.levelno, record.levelname = logging.INFO, logging.getLevelName(logging.INFO)
    return True
