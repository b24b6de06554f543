"""What ``--wait`` adds to python-openstackclient's volume commands."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from openstack import exceptions

from cli.commands import CommandTable
from cli.main import Program
from cli.osc.volume_stages import AWAITED_VOLUMES
from tests.fixtures.sdk import FakeConnection, FakeProxy, Ran, run

#: osc_lib warns of itself
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

UUID = "11111111-1111-1111-1111-111111111111"
GONE = exceptions.NotFoundException("gone")


@pytest.mark.parametrize("name", AWAITED_VOLUMES)
def test_each_has_wait_once(name: str) -> None:
    command, found, _ = CommandTable().find_command(name.split())
    assert found == name
    text = command(Program(), None).get_parser(f"micronova {name}").format_help()
    assert text.partition("options:")[2].count("--wait ") == 1


def story(state: str, percent: int | None = None, message: str | None = None) -> Any:
    """What the ledger says of the volume's operation, and of one before."""
    detail = {} if percent is None else {"progress": {"percent": percent, "disk_bytes": percent}}
    if percent is not None:
        detail["progress"] |= {"disk_total_bytes": 100, "memory_bytes": 0, "memory_total_bytes": 0}
    step = {
        "name": "compute_make_volume",
        "started_at": "2026-01-01T00:00:01.000000Z",
        "finished_at": None if state == "running" else "2026-01-01T00:00:09.000000Z",
        "result": {"running": None, "done": "Success"}.get(state, "Error"),
        "detail": detail,
    }
    operation = {
        "resource": {"type": "volume", "id": UUID},
        "request_id": "req-new",
        "started_at": "2026-01-01T00:00:00.000000Z",
        "state": state,
        "message": message,
        "events": [step],
    }
    before = {"started_at": "2025-01-01T00:00:00.000000Z", "request_id": "req-old"}
    return explained(operation, {**operation, **before})


def explained(*operations: Any) -> Any:
    body = {"explanation": {"operations": list(operations)}}
    return SimpleNamespace(status_code=200, json=lambda: body)


class Asked:
    """A command of osc's, which says that it asked; each look at the volume finds the next."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, name: str, looks: Iterable[Any], stories: Any
    ) -> None:
        self.asked: list[Any] = []
        found, explanations = iter(looks), iter(stories)
        volume = SimpleNamespace(id=UUID, name="data", volume_id=UUID)

        def get(_: str) -> Any:
            one = next(found)
            if isinstance(one, Exception):
                raise one
            return SimpleNamespace(id=UUID, status=one)

        storage = FakeProxy(
            get_volume=get, get_snapshot=get, find_volume=volume, find_snapshot=volume
        )
        compute = FakeProxy(get=lambda _: next(explanations))
        self.connection = FakeConnection(compute, block_storage=storage)
        self._name = name
        theirs = CommandTable().theirs[name].load()
        shows = hasattr(theirs, "produce_output")

        def take_action(_: Any, parsed_args: argparse.Namespace) -> Any:
            self.asked.append(parsed_args)
            return (("id", "name"), (UUID, "data")) if shows else None

        monkeypatch.setattr(theirs, "take_action", take_action)
        if shows:
            shown = CommandTable().theirs[name.replace("create", "show")].load()
            now = (("id", "status"), (UUID, "available"))
            monkeypatch.setattr(shown, "take_action", lambda *_: now)

    def run(self, *options: str) -> Ran:
        return run(self.connection, *self._name.split(), *options)


def test_a_create_shows_how_far_its_copy_is(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = ["downloading", "downloading", "available"]
    stories = [story("running", 20), story("running", 60), story("done")]
    asked = Asked(monkeypatch, "volume create", looks, stories)
    ran = asked.run("data", "--size", "1", "--wait", "-f", "json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out) == {"id": UUID, "status": "available"}
    lines = [line.split() for line in ran.err.splitlines()]
    assert [one[-1] for one in lines if len(one) == 3] == ["downloading", "available"]
    assert [one[2:4] for one in lines if len(one) > 3] == [["make", "volume"]] * 3
    assert ["20" in ran.err, "60" in ran.err, "Success" in ran.err] == [True] * 3


def test_what_fails_ends_the_wait_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    stories = [story("failed", message="The storage is full.")]
    asked = Asked(monkeypatch, "volume create", ["error"], stories)
    ran = asked.run("data", "--size", "1", "--wait")
    assert ran.code == 1
    assert ran.err.splitlines()[-1] == (
        f"Volume data ({UUID}) is error: The storage is full. (micronova explain req-new)"
    )


def test_a_delete_waits_until_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    old = explained(*story("done").json()["explanation"]["operations"][1:])
    stories = [old, story("running"), story("done")]
    asked = Asked(monkeypatch, "volume delete", ["deleting", GONE], stories)
    ran = asked.run("data", "--wait")
    assert (ran.code, len(asked.asked)) == (0, 1), ran.err
    stories = [old, story("running"), story("failed", message="It is protected.")]
    asked = Asked(monkeypatch, "volume delete", ["deleting", "error_deleting"], stories)
    ran = asked.run("data", "--wait")
    assert (ran.code, "is error_deleting: It is protected." in ran.err) == (1, True)


def test_an_old_failure_counts_not(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = story("failed", message="Then.").json()["explanation"]["operations"][1]
    stories = [explained(failed), explained(failed), story("done")]
    asked = Asked(monkeypatch, "volume set", ["extending", "available"], stories)
    assert asked.run("data", "--size", "2", "--wait").code == 0


def test_a_new_name_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for options in (("--name", "x", "--wait"), ("--size", "2")):
        asked = Asked(monkeypatch, "volume set", [], [])
        assert asked.run("data", *options).code == 0
        assert len(asked.asked) == 1


def test_a_revert_waits_for_the_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    stories = [explained(), story("running"), story("done")]
    asked = Asked(monkeypatch, "volume revert", ["reverting", "available"], stories)
    assert asked.run("before", "--wait").code == 0
    assert asked.connection.block_storage.called("get_volume") == [((UUID,), {})] * 2


def test_another_cloud_has_statuses_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = SimpleNamespace(status_code=404)
    asked = Asked(monkeypatch, "volume create", ["creating", "available"], [nothing] * 2)
    ran = asked.run("data", "--size", "1", "--wait")
    shown = [line.split()[-1] for line in ran.err.splitlines()]
    assert (ran.code, shown) == (0, ["creating", "available"])


@pytest.mark.parametrize("name", ["volume message delete", "volume message show"])
@pytest.mark.parametrize(("chosen", "used"), [(None, "3.5"), ("3.71", "3.71")])
def test_messages_are_asked_for_at_a_microversion_that_has_them(
    name: str, chosen: str | None, used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(monkeypatch, name, [], [])
    volumes = asked.connection.block_storage
    volumes.default_microversion = chosen
    assert (asked.run(UUID).code, volumes.default_microversion) == (0, used)
