"""The queues of hosts as pages show them."""

from __future__ import annotations

import datetime
from typing import Any

from common import clock
from dashboard.cloud import Missing
from dashboard.pages.queues import by_host


def a_queue(kind: str, name: str, **changes: Any) -> dict[str, Any]:
    values = {"width": 4, "shared": False, "running": 4, "waiting": 0}
    return {"kind": kind, "name": name, "oldest_waiting_seconds": None, **values, **changes}


def test_what_waits_anywhere_is_summed() -> None:
    queues = [
        a_queue("operations", "operations", shared=True),
        a_queue("storage", "local", waiting=2, oldest_waiting_seconds=1.0),
        a_queue("storage", "nfs", waiting=1, oldest_waiting_seconds=9.5, shared=True),
    ]
    reported = {"host": "pve1", "reported_seconds_ago": 3, "queues": queues}
    found = by_host({"hosts": [reported, {"host": "pve2", "queues": None}]})
    assert list(found) == ["pve1"]
    assert (found["pve1"].waiting, found["pve1"].oldest) == (3, 9.5)
    meters = [line.meter for line in found["pve1"].lines]
    assert [one.title for one in meters] == ["Operations (shared)", "local", "nfs (shared)"]
    assert not any(one.warns for one in meters)


def test_nothing_is_known_where_the_api_refuses() -> None:
    assert by_host(Missing("no")) == {}


def test_when_they_were_reported_is_a_time() -> None:
    host = {"host": "pve1", "reported_seconds_ago": 90, "queues": [a_queue("storage", "local")]}
    at = datetime.datetime.fromisoformat(by_host({"hosts": [host]})["pve1"].reported_at)
    assert clock.utcnow() - at >= datetime.timedelta(seconds=90)
    assert at.tzinfo is not None
