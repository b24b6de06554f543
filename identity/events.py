"""What Keystone notifies of, in a file: logins, accepted and refused, and changes of who may what.

An event of CADF is a line of JSON, as in the audit log of the APIs. The file is rotated by
renaming.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
from pathlib import Path

#: under which oslo.messaging's driver ``log`` logs notifications
_LOGGER = "oslo.messaging.notification"
NAME = "audit.log"


def write_to(folder: Path) -> None:
    """Write events to a file in this folder, and not to Keystone's own log."""
    handler = logging.handlers.WatchedFileHandler(folder / NAME, encoding="utf-8", delay=True)
    handler.setFormatter(_Payload())
    logger = logging.getLogger(_LOGGER)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False


class _Payload(logging.Formatter):
    """The event alone: what is around it is the message bus's."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        return json.dumps(json.loads(record.getMessage())["payload"])
