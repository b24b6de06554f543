"""Completion for zsh and fish: every command and every option of ours is offered."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from cli.commands import COMMANDS, CommandTable
from cli.completion import Tree, fish, zsh
from tests.fixtures.sdk import FakeConnection, run


def tree() -> Tree:
    made = Tree()
    made.add("server create", ["--flavor", "--image"])
    made.add("server list", [])
    made.add("up", ["--port"])
    return made


def test_what_follows_what() -> None:
    assert dict(tree().words) == {"": {"server", "up"}, "server": {"create", "list"}}
    text = zsh("micronova", tree())
    assert "  . 'server up'\n" in text
    assert "  server 'create list'\n" in text
    assert "  'server create' '--flavor --image'\n" in text
    lines = fish("micronova", tree()).splitlines()
    assert "complete -c micronova -f -n '__micronova_at ' -a 'server up'" in lines
    assert "complete -c micronova -f -n '__micronova_at server' -a 'create list'" in lines
    assert "complete -c micronova -n '__micronova_at server create' -l flavor" in lines


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_every_command_is_completed(shell: str) -> None:
    ran = run(FakeConnection(), "complete", "--shell", shell)
    assert ran.code == 0, ran.err
    for name in (*COMMANDS, *CommandTable().theirs):
        assert re.search(rf"\b{re.escape(name.split()[-1])}\b", ran.out), name
    assert "all-projects" in ran.out
    program = shutil.which(shell)
    if program is not None:
        done = subprocess.run(
            [program, "-n"], input=ran.out, text=True, capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_bash_is_the_default() -> None:
    assert "complete -F _micronova micronova" in run(FakeConnection(), "complete").out
