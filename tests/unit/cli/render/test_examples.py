"""Each command has an example in its help, and takes each of its examples."""

from __future__ import annotations

import shlex
from types import SimpleNamespace
from typing import Any

import pytest

from cli.commands import COMMANDS, CommandTable
from cli.render.examples import EXAMPLES, lines
from tests.fixtures.sdk import FakeConnection, run

TABLE = CommandTable()


def test_each_command_has_examples_and_no_other() -> None:
    assert sorted(EXAMPLES) == sorted(COMMANDS)
    assert all(EXAMPLES.values())


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_help_shows_them(name: str) -> None:
    out = run(FakeConnection(), "help", *name.split()).out
    assert "examples:" in out
    for line in lines(name):
        assert f"\n  {line}\n" in out


@pytest.mark.parametrize(
    ("name", "line"), [(name, line) for name in sorted(EXAMPLES) for line in lines(name)]
)
def test_each_is_one_that_the_command_takes(name: str, line: str) -> None:
    program, *words = shlex.split(line)
    command, found, rest = TABLE.find_command(words)
    assert (program, found) == ("micronova", name)
    app: Any = SimpleNamespace(
        NAME="micronova", command_manager=TABLE, options=SimpleNamespace(), LOG=None
    )
    command(app, None).get_parser(f"micronova {name}").parse_args(rest)
