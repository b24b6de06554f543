"""What may be meant: names, options, and what doesn't exist here."""

from __future__ import annotations

import argparse
from types import SimpleNamespace
from typing import Any

import pytest
from openstack import exceptions

from cli.commands import CommandTable
from cli.hints import hint
from cli.osc.absent import ABSENT, absent
from cli.osc.names import entry_points
from cli.suggestions import unknown_command
from tests.fixtures.sdk import FakeConnection, FakeProxy, run


def named(*names: str) -> Any:
    return [SimpleNamespace(id=name, name=name) for name in names]


CLOUD = FakeConnection(
    FakeProxy(
        keypairs=named("laptop", "desk"),
        availability_zones=named("nova", "nova", "az2"),
        servers=named("log-1", "web"),
        flavors=named(),
    ),
    network=FakeProxy(security_groups=named("default", "webby")),
)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Invalid key_name provided.", " Did you mean 'laptop'? There are: desk, laptop"),
        (
            "The requested availability zone is not available",
            " Did you mean 'nova'? There are: az2, nova",
        ),
        (
            "Unable to find security_group with name or id 'weby' (HTTP 400)",
            " Did you mean 'webby'? There are: default, webby",
        ),
        (
            "Security group weby is not found for project p",
            " Did you mean 'webby'? There are: default, webby",
        ),
        ("No Keypair found for latop", " Did you mean 'laptop'? There are: desk, laptop"),
        ("No server named 'log1'.", " Did you mean 'log-1'?"),
        ("No server named 'zzz'.", ""),
        ("No Flavor found for x", " There is none at all."),
        ("No Image found for x", ""),
        ("Quota exceeded.", ""),
    ],
)
def test_the_names_there_are(said: str, expected: str) -> None:
    given = argparse.Namespace(key_name="latop", availability_zone="nov")
    assert hint(lambda: CLOUD, said, given) == expected


def test_a_wrong_name_of_a_server_is_answered_with_the_like() -> None:
    compute = FakeProxy(
        find_server=exceptions.NotFoundException("none"),
        servers=named("log-1", "web"),
        stop_server=None,
        delete_server=None,
    )
    for command in (("server", "show"), ("server", "stop"), ("server", "delete")):
        assert "Did you mean 'log-1'?" in run(FakeConnection(compute), *command, "log1").err


def test_mistyped_options(capsys: pytest.CaptureFixture[str]) -> None:
    run(FakeConnection(), "server", "list", "--al-projects")
    assert "There is no option --al-projects. Did you mean --all-projects?" in (
        capsys.readouterr().err
    )
    run(FakeConnection(), "server", "create", "--flavr", "x", "--imag=y", "web")
    err = capsys.readouterr().err
    assert "Did you mean --flavor?" in err
    assert "no option --imag" not in err  # the beginning of one is enough
    run(FakeConnection(), "server", "list", "--zzzzzz")
    assert "Did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize("words", ["router create r1", "router list", "floating ip list"])
def test_what_does_not_exist_here(words: str) -> None:
    said = unknown_command(words.split(), CommandTable().commands)
    assert said.startswith(f"There are no {absent(words.split())} here: ")
    assert "Did you mean" not in said


def test_nothing_that_exists_is_called_absent() -> None:
    for name in (*CommandTable().commands, *entry_points()):
        assert not any(name == one or name.startswith(f"{one} ") for one in ABSENT), name
