"""Begins what is done with a volume: its status allows it, and nothing else works on it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from common.resources.volumes import RULES
from conductor.store.transactions import Transaction
from conductor.store.volumes import snapshots, volumes


def begin(connection: Transaction, row: Any, action: str, statuses: Iterable[str] = ()) -> None:
    """Set a locked volume to the status of an action that begins. Raises Invalid.

    ``statuses``: in which it may, where the action's rule isn't all.
    """
    volumes.require_status(row, action, statuses)
    if RULES[action].alone:
        snapshots.require_alone(connection, row)
    volumes.show_begun(connection, row, action)
