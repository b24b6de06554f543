"""What ``--wait`` adds to python-openstackclient's commands."""

from __future__ import annotations

import argparse
import json
from types import SimpleNamespace
from typing import Any

import pytest

from cli.commands import CommandTable
from cli.main import Program
from cli.osc.stages import AWAITED
from tests.fixtures.sdk import FakeConnection, FakeProxy, Ran, run
from tests.unit.cli.test_servers import a_server, a_story, named

#: osc_lib warns of itself
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

UUID = "11111111-1111-1111-1111-111111111111"


@pytest.mark.parametrize("name", AWAITED)
def test_each_has_wait_once(name: str) -> None:
    command, found, _ = CommandTable().find_command(name.split())
    assert found == name
    text = command(Program(), None).get_parser(f"micronova {name}").format_help()
    options = text.partition("options:")[2]
    assert options.count("--wait ") == 1


def of_request(story: Any, request_id: str) -> Any:
    """The story of another request."""
    operations = [
        {**one, "request_id": request_id} for one in story.json()["explanation"]["operations"]
    ]
    explanation = {"subject": request_id, "operations": operations}
    return SimpleNamespace(status_code=200, json=lambda: {"explanation": explanation})


class Asked:
    """A command of osc's, which says that it asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, story: Any) -> None:
        self.waits: list[bool] = []
        looks = iter([of_request(story, "req-before"), story])
        self.connection = FakeConnection(
            FakeProxy(
                find_server=named(web=UUID),
                get_server=a_server(),
                get=lambda _: next(looks, story),
            )
        )
        self._name = name
        theirs = CommandTable().theirs[name].load()

        def take_action(_: Any, parsed_args: argparse.Namespace) -> Any:
            self.waits.append(parsed_args.wait)
            return (("id",), (UUID,)) if hasattr(theirs, "produce_output") else None

        monkeypatch.setattr(theirs, "take_action", take_action)

    def run(self, *options: str) -> Ran:
        return run(self.connection, *self._name.split(), *options)


def test_the_command_asks_and_the_stages_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    story = a_story("rebuilding", "rebuild_spawning", action="rebuild")
    asked = Asked(monkeypatch, "server rebuild", story)
    ran = asked.run("web", "--wait", "-f", "json")
    assert (ran.code, asked.waits) == (0, [False]), ran.err
    assert json.loads(ran.out) == {"id": UUID}
    shown = [line[12:].split("  ")[1:] for line in ran.err.splitlines()]
    assert [words[0] or words[1] for words in shown] == [
        *("rebuilding", "do rebuilding", "rebuild_spawning", "do rebuild spawning")
    ]


def test_without_wait_nothing_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, "server rebuild", a_story("rebuilding", action="rebuild"))
    ran = asked.run("web", "-f", "json")
    assert (ran.code, asked.waits, ran.err) == (0, [False], "")
    assert asked.connection.compute.called("get") == []


def test_a_failure_ends_the_wait_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    story = a_story("migrating", action="live-migration", message="It could not be moved.")
    ran = Asked(monkeypatch, "server migrate", story).run("--live-migration", "--wait", "web")
    assert ran.code == 1
    assert "live-migration failed: It could not be moved. (micronova explain req-" in ran.err


def test_what_was_not_begun_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    story = a_story("shelving", action="shelve", message="This was another time.")
    asked = Asked(monkeypatch, "server shelve", story)
    asked.connection.compute.answers["get"] = story
    ran = asked.run("--wait", "web")
    assert (ran.code, ran.out, ran.err, asked.waits) == (0, "", "", [False])
