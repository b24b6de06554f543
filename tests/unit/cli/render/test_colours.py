"""Colours of states: where, which, and where none."""

from __future__ import annotations

import json

import pytest

from cli.render.colours import State, colour_of
from tests.fixtures.sdk import FakeConnection, FakeProxy, Ran, run
from tests.unit.cli.test_servers import a_server

pytestmark = pytest.mark.filterwarnings("ignore:The _compute_attributes method is deprecated")


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def listed(*words: str, terminal: bool = True) -> Ran:
    proxy = FakeProxy(servers=[a_server(status="ERROR")], find_server=a_server(status="ERROR"))
    connection = FakeConnection(proxy, FakeProxy(images=[], get_image=a_server()))
    return run(connection, "server", *words, terminal=terminal)


def test_states_of_a_table_and_of_a_thing() -> None:
    assert "| \x1b[31mERROR\x1b[0m " in listed("list").out
    out = listed("list", "--long").out
    assert "\x1b[32mRunning\x1b[0m" in out
    assert "\x1b[2mNone\x1b[0m" in out
    widths = {
        len(line.replace("\x1b[31m", "").replace("\x1b[0m", ""))
        for line in listed("list").out.splitlines()
    }
    assert len(widths) == 1
    shown = listed("show", "web").out
    assert "\x1b[31mERROR\x1b[0m" in shown
    assert "\x1b[32mactive\x1b[0m" in shown


def test_none_but_at_a_terminal_that_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in listed("list", terminal=False).out
    for words in (("-f", "json"), ("-f", "value"), ("-f", "csv"), ("--fit-width",)):
        assert "\x1b" not in listed("list", *words).out, words
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in listed("list").out
    monkeypatch.setenv("NO_COLOR", "")
    assert "\x1b" in listed("list").out
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in listed("list").out


def test_machines_read_the_state_alone() -> None:
    [row] = json.loads(listed("list", "-f", "json").out)
    assert row["Status"] == "ERROR"
    assert State("up").machine_readable() == "up"


@pytest.mark.parametrize(
    ("state", "colour"),
    [
        *[(one, "\x1b[32m") for one in ("ACTIVE", "up", "in-use", "Running", "enabled")],
        *[(one, "\x1b[31m") for one in ("ERROR", "error_deleting", "down", "failed")],
        *[(one, "\x1b[2m") for one in ("SHUTOFF", "None", "", "SHELVED_OFFLOADED", "disabled")],
        *[(one, "\x1b[33m") for one in ("BUILD", "REBOOT", "creating", "VERIFY_RESIZE")],
    ],
)
def test_what_a_colour_means(state: str, colour: str) -> None:
    assert colour_of(state) == colour
