"""The program itself: its table, its help, its exit codes, what it says of an error."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import cliff.command
import pytest
from openstack import exceptions

from cli import options
from cli.commands import COMMANDS, CommandTable
from cli.errors import CommandFailed, sentence
from cli.help import summary
from cli.logs import configure, masked
from cli.main import Program
from tests.fixtures.sdk import FakeConnection, FakeProxy, run

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _root_logger_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_loads_and_says_what_it_does(name: str) -> None:
    command = CommandTable().commands[name].load()
    assert issubclass(command, cliff.command.Command)
    assert summary(command)
    program = Program()
    parser = command(program, None).get_parser(f"micronova {name}")
    assert parser.format_help()


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'openstack','sqlalchemy','rich','keystoneauth1','oslo_config','requests'}\n"
        "heavy |= {'openstackclient','osc_lib'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"
    assert all(f"  {name} " in done.stdout for name in COMMANDS)
    assert re.search(r"^  compute service +delete, list, set$", done.stdout, re.MULTILINE)


def in_a_shell(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script that has the program as $m."""
    return subprocess.run(
        ["bash", "-c", f"m='{sys.executable} -m micronova'; {script}"],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("command", ["help", "--help", "complete", "help server create"])
def test_who_reads_only_the_first_line_sees_no_traceback(command: str) -> None:
    done = in_a_shell(f"$m {command} | head -1; echo ${{PIPESTATUS[0]}}")
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] in ("0", "141")


def test_what_the_terminal_cannot_show_ends_no_command() -> None:
    code = (
        "import io, sys\n"
        "from cli import main\n"
        "main.Program.run = lambda *_: print('1 \u00d7 3 \u2502') or 0\n"
        "sys.exit(main.main([]))"
    )
    done = in_a_shell(f'PYTHONPATH=. {sys.executable} -c "{code}"', PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 ? 3 ?\n", "")


def test_an_empty_list_says_so() -> None:
    cloud = FakeConnection(
        FakeProxy(servers=[], images=[], flavors=[]), image=FakeProxy(images=[])
    )
    ran = run(cloud, "server", "list")
    assert (ran.code, ran.err) == (0, "Nothing to list.\n")
    assert run(cloud, "server", "list", "-f", "json").err == ""


def test_without_a_command_it_prints_the_help() -> None:
    with pytest.raises(SystemExit) as end:
        Program().run([])
    assert end.value.code == 0


def test_help_of_a_command() -> None:
    ran = run(FakeConnection(), "help", "server", "create")
    assert ran.code == 0
    assert "--flavor" in ran.out


def test_unknown_command_is_wrong_usage() -> None:
    assert run(FakeConnection(), "serwer", "lst").code == 2


def test_missing_option_is_wrong_usage() -> None:
    assert run(FakeConnection(), "server", "create", "x").code == 2


def test_completion_knows_the_commands() -> None:
    ran = run(FakeConnection(), "complete")
    assert ran.code == 0
    assert "cmds_server_event='list show'" in ran.out
    assert re.search("cmds_server='[^']* migrate ", ran.out)


def test_an_error_is_one_line_without_traceback() -> None:
    response = SimpleNamespace(
        status_code=404, headers={"x-openstack-request-id": "req-1"}, request=None
    )
    error = exceptions.NotFoundException("No", response=response, details="Instance x is\n gone.")
    ran = run(FakeConnection(FakeProxy(servers=error)), "server", "list")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "Instance x is gone. (HTTP 404) (Request-ID: req-1)\n"


def test_debug_shows_the_traceback() -> None:
    ran = run(FakeConnection(FakeProxy(servers=ValueError("odd"))), "--debug", "server", "list")
    assert ran.code == 1
    assert "Traceback" in ran.err


def test_the_connection_is_closed() -> None:
    connection = FakeConnection(FakeProxy(servers=[]))
    assert run(connection, "server", "list").code == 0
    assert connection.closed


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (CommandFailed("plain"), "plain"),
        (
            RuntimeError("Unable to establish connection to http://a/: HTTPConnectionPool(host"),
            "Unable to establish connection to http://a/",
        ),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_sentences(error: Exception, line: str) -> None:
    assert sentence(error) == line


def test_missing_credentials_are_named() -> None:
    from keystoneauth1.exceptions import MissingRequiredOptions

    lacking = MissingRequiredOptions([SimpleNamespace(dest="username", name="username")])
    assert sentence(lacking) == "The cloud's credentials lack username"


def test_errors_in_a_log_line_are_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    response = SimpleNamespace(
        status_code=403, headers={"x-openstack-request-id": "req-1"}, request=None
    )
    error = exceptions.ForbiddenException("No", response=response, details="Not for you.")
    configure(sys.stderr, logging.WARNING, None)
    logging.getLogger("x").error("Failed to delete %(name)s: %(e)s", {"name": "a", "e": error})
    logging.getLogger("x").error("%s: %s", "b", error)
    assert capsys.readouterr().err == (
        "Failed to delete a: Not for you. (HTTP 403) (Request-ID: req-1)\n"
        "b: Not for you. (HTTP 403) (Request-ID: req-1)\n"
    )


def test_secrets_are_masked_in_logs() -> None:
    text = masked(json.dumps({"adminPass": "s3", "x": {"private_key": "s3"}, "name": "web"}))
    assert "s3" not in text
    assert "web" in text


def test_only_given_options_reach_the_cloud_configuration() -> None:
    program = Program()
    argv = ["--os-cloud", "c", "--insecure", "--os-compute-api-version", "2.79"]
    parsed = program.parser.parse_args([*argv, "--os-volume-api-version", "3.71"])
    given = options.given(parsed, {"OS_REGION_NAME": "r", "OS_CLOUD": "d", "OS_USERNAME": ""})
    assert vars(given) == {
        "cloud": "c",
        "insecure": True,
        "region_name": "r",
        "os_compute_api_version": "2.79",
        "os_volume_api_version": "3.71",
    }


def test_no_two_global_options_share_a_name() -> None:
    assert len(set(options.NAMES)) == len(options.NAMES)
    assert all(re.fullmatch(r"[a-z0-9_]+", name) for name in options.NAMES)
