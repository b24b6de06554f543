"""Servers that seem to have run for long: their measurements, and the record of their VMID."""

from __future__ import annotations

import contextlib
import datetime
import sqlite3

from common import clock
from tests.functional.cloud import EmbeddedCloud

LONG = datetime.timedelta(days=400)


def age(cloud: EmbeddedCloud, server_id: str) -> None:
    """Let a server have begun long ago."""
    with (
        contextlib.closing(sqlite3.connect(cloud.state_dir / "cloud.sqlite")) as database,
        database,
    ):
        [(vmid,)] = database.execute("SELECT vmid FROM servers WHERE uuid = ?", (server_id,))
        before = (clock.utcnow() - LONG).replace(tzinfo=None)
        database.execute(
            "UPDATE vmid_journal SET reserved_at = ? WHERE vmid = ?",
            (before.isoformat(" ", "microseconds"), vmid),
        )
    seconds = LONG.total_seconds() - 60
    cloud.control("POST", "history", vmid=vmid, seconds=seconds)
