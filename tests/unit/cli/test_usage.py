"""Words that are no command, and commands that are not used as they are meant."""

from __future__ import annotations

import pytest

from cli.commands import CommandTable, longest
from tests.fixtures.sdk import FakeConnection, FakeProxy, Ran, run


def refused(*words: str) -> Ran:
    """Run words that are no command: nothing is called."""
    compute = FakeProxy()
    ran = run(FakeConnection(compute), *words)
    assert (ran.code, ran.out, compute.calls) == (2, "", [])
    return ran


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("server delte web-1", "'server delete'"),
        ("server del web-1", "'server delete'"),
        ("servr list", "'server list'"),
        ("serverlist", "'server list'"),
        ("server release-hol web", "'server release-hold'"),
        ("flavr show m1.tiny", "'flavor show'"),
        ("exlpain web-1", "'explain'"),
        ("image lst --long", "'image list'"),
        ("server migration revrt web", "'server migration revert'"),
    ],
)
def test_a_misspelt_command_suggests_and_runs_nothing(words: str, meant: str) -> None:
    ran = refused(*words.split())
    assert "is not a command. Did you mean " in ran.err
    assert meant in ran.err
    assert len(ran.err.splitlines()) == 1


def test_no_beginning_of_a_command_runs_it() -> None:
    """Nor does a command without its last letter, unless that is a command too."""
    table = CommandTable()
    names = {name for name, _ in table}
    shorter = {short for name in names for short in (name[:-1], name[: name.rfind(" ") + 2])}
    for short in shorter:
        if not longest(short.split(), names):
            with pytest.raises(ValueError, match="is not a"):
                table.find_command(short.split())


def test_the_first_words_of_commands_list_them() -> None:
    ran = refused("server", "event")
    assert ran.err == (
        "'server event' is not a whole command. There are: server event list, server event show\n"
    )


def test_words_like_nothing_point_to_the_help() -> None:
    assert refused("xyzzy").err == "'xyzzy' is not a command; see 'micronova help'.\n"


def test_an_option_of_a_command_before_it() -> None:
    ran = refused("--flavor", "m1.tiny", "server", "create")
    assert ran.err == "--flavor is no option here: options of a command come after it.\n"


def test_wrong_usage_begins_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FakeConnection(), "server", "create", "--image", "i").code == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == (
        "micronova server create: the following arguments are required: <server-name>, --flavor"
    )
    assert lines[2].startswith("usage: micronova server create")
