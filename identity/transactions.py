"""How Keystone's transactions begin on SQLite: a writer as the one writer, a reader as none.

oslo.db begins every transaction as a reader. A reader that writes later must become the writer,
which SQLite refuses at once ("database is locked") if another transaction has written since it
began: waiting could not help. So a transaction that Keystone opens for writing begins as the
writer, and waits for its turn. Transactions that only read have their own engine and never wait.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from keystone.common import sql


def queue_writers() -> None:
    """Set up the engines of this process's Keystone; before its first request.

    `[database]slave_connection` names the readers' engine: the same file as `connection`.
    """
    manager = sql.core._get_main_context_manager()
    # Otherwise oslo.db takes the slave for those only who don't mind what is old.
    manager.configure(synchronous_reader=False)
    writer = manager.writer.get_engine()
    if writer is manager.reader.get_engine():
        raise RuntimeError("keystone.conf names no slave_connection")
    sa.event.listen(writer, "before_cursor_execute", _begin_immediate, retval=True)


def _begin_immediate(
    connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any
) -> tuple[str, Any]:
    """Make what oslo.db begins a transaction with the statement that waits for its turn."""
    return "BEGIN IMMEDIATE" if statement == "BEGIN" else statement, parameters
