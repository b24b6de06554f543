"""``micronova node drain`` and ``rebalance --apply``: begun, followed, steered."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fixtures.sdk import FakeConnection, FakeProxy, run

MOVE: dict[str, Any] = {
    "server": "uuid-1",
    "name": "web",
    "state": "moving",
    "way": "live",
    "source": "pve1",
    "target": None,
    "stage": "move",
    "reason": None,
    "purpose": None,
}
DRAIN: dict[str, Any] = {
    "id": 7,
    "action": "drain",
    "host": "pve1",
    "state": "queued",
    "asked": "go",
    "message": "0 moved, 1 remain (1: moving).",
    "moves": [MOVE],
}
DONE = {
    **DRAIN,
    "state": "done",
    "message": "1 moved, none remain.",
    "moves": [{**MOVE, "state": "moved", "stage": None}],
}
LEFT = {
    **DRAIN,
    "state": "failed",
    "message": "0 moved, 1 remain (1: it is held).",
    "moves": [{**MOVE, "state": "blocked", "way": None, "stage": None, "reason": "it is held"}],
}


def response(**body: Any) -> Any:
    return SimpleNamespace(status_code=200, json=lambda: body)


class Api:
    """Answers with one look after the other, the last one for ever."""

    def __init__(self, *looks: dict[str, Any], listed: tuple[dict[str, Any], ...] = ()) -> None:
        self._looks: Iterator[dict[str, Any]] = iter(looks)
        self._last: dict[str, Any] = {}
        self._listed = listed
        proxy = FakeProxy(get=self._get, post=lambda *_, **__: response(bulk_migration={"id": 7}))
        self.connection = FakeConnection(proxy)

    def _get(self, path: str, **_: Any) -> Any:
        if path == "/bulk-migrations":
            return response(bulk_migrations=list(self._listed))
        self._last = next(self._looks, self._last)
        return response(bulk_migration=self._last)

    @property
    def posted(self) -> list[tuple[str, Any]]:
        return [(args[0], kw["json"]) for args, kw in self.connection.compute.called("post")]


def test_begun_and_not_waited_for() -> None:
    api = Api(DRAIN)
    ran = run(api.connection, "node", "drain", "pve1", "-f", "value")
    assert ran.code == 0
    assert ran.out.split() == ["uuid-1", "web", "moving", "live", "pve1", "move"]
    assert "The drain of pve1 (7) is under way: 0 moved, 1 remain" in ran.err
    asked = {"host": "pve1", "at_once": 2, "live_only": False}
    assert api.posted == [("/bulk-migrations", {"bulk_migration": {"drain": asked}})]


def test_waiting_shows_each_stage_once() -> None:
    api = Api(DRAIN, DRAIN, DONE)
    flags = ("--wait", "--at-once", "5", "--live-only", "-f", "value")
    ran = run(api.connection, "node", "drain", "pve1", *flags)
    assert ran.code == 0
    assert ran.err.count("web (uuid-1): moving, move") == 1
    assert ran.err.count("web (uuid-1): moved") == 1
    assert "is done: 1 moved, none remain." in ran.err
    asked = {"host": "pve1", "at_once": 5, "live_only": True}
    assert api.posted == [("/bulk-migrations", {"bulk_migration": {"drain": asked}})]


def test_what_is_left_fails_the_command_and_is_named() -> None:
    ran = run(Api(DRAIN, LEFT).connection, "node", "drain", "pve1", "--wait", "-f", "value")
    assert ran.code == 1
    assert "it is held" in ran.out
    assert "is failed: 0 moved, 1 remain (1: it is held)." in ran.err


@pytest.mark.parametrize("action", ["pause", "resume", "cancel"])
def test_steered(action: str) -> None:
    api = Api({**DRAIN, "asked": "pause"}, listed=(DRAIN, {**DRAIN, "id": 3}))
    ran = run(api.connection, "node", "drain", "pve1", f"--{action}", "-f", "value")
    assert ran.code == 0
    assert api.posted == [("/bulk-migrations/7/action", {action: None})]
    assert "is under way, paused" in ran.err
    looked = api.connection.compute.called("get")[0]
    assert looked == (("/bulk-migrations",), {"params": {"host": "pve1"}})


def test_the_status_of_one_that_never_was() -> None:
    ran = run(Api().connection, "node", "drain", "pve1", "--status")
    assert ran.code == 1
    assert "There was no drain of pve1" in ran.err


def test_a_dry_run_begins_nothing() -> None:
    servers = [
        {"server": "uuid-1", "name": "web", "way": "live", "target": "pve2", "reason": None},
        {"server": "uuid-2", "name": "db", "way": None, "target": None, "reason": "it is held"},
    ]
    plan = response(drain={"host": "pve1", "servers": servers})
    connection = FakeConnection(FakeProxy(get=plan))
    ran = run(connection, "node", "drain", "pve1", "--dry-run", "-f", "csv")
    assert ran.code == 0
    assert '"uuid-2","db","","","it is held"' in ran.out
    assert "1 server would move, 1 would stay; nothing was moved." in ran.err
    assert connection.compute.called("get") == [(("/drains/pve1",), {"params": {}})]


def test_a_rebalance_is_applied_with_what_each_move_gains() -> None:
    move = {**MOVE, "target": "pve2", "purpose": "it takes 3.0 % off the score"}
    one = {**DRAIN, "action": "rebalance", "host": None, "moves": [move]}
    api = Api(one, listed=(one,))
    ran = run(api.connection, "rebalance", "--apply", "--limit", "3", "-f", "value")
    assert ran.code == 0
    assert "it takes 3.0 % off the score" in ran.out
    assert "The rebalance (7) is under way" in ran.err
    asked = {"rebalance": {"limit": 3, "at_once": 2}}
    assert api.posted == [("/bulk-migrations", {"bulk_migration": asked})]
    run(api.connection, "rebalance", "--cancel")
    assert api.posted[1] == ("/bulk-migrations/7/action", {"cancel": None})
