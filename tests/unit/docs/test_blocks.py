"""What a page prints is read by what it is for: commands, options, settings."""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import itertools
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from oslo_config import cfg

from cli.main import Program
from launcher import sample
from tests.pages import PAGES, Block, every_block, inline_commands

pytestmark = pytest.mark.filterwarnings("ignore")

#: what stands for something of the reader's
_PLACEHOLDER = re.compile(r"<[^<>|]+>|…|\$\w+")
_COMMENT = re.compile(r"\s+#.*$")
#: where the words that describe a command begin
_COLUMN = re.compile(r" {2,}")
_ENDS = frozenset({"|", "||", "&&", ";", ">", ">>", "<"})
_OUR_WORDS = frozenset({"micronova", "openstack"})


class ReadError(Exception):
    """A command or an option is not what the program takes."""


# --- commands


@functools.cache
def the_program() -> Program:
    """Return the program, on a cloud that has every API."""
    made = Program()
    made.client_manager = SimpleNamespace(  # type: ignore[assignment]
        is_network_endpoint_enabled=lambda: True,
        is_volume_endpoint_enabled=lambda *_: True,
        is_compute_endpoint_enabled=lambda: True,
    )
    return made


@pytest.fixture(scope="module")
def program() -> Program:
    """The program, on a cloud that has every API."""
    return the_program()


def is_whole(words: list[str]) -> bool:
    """Return whether a command that stands in a sentence is one as it stands: it can be run."""
    said = io.StringIO()
    if not words[1:] or words[1] == "help":
        return False
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            read_command(the_program(), words)
        except (ReadError, LookupError):
            return False
    return True


def read_command(program: Program, words: list[str]) -> None:
    """Parse a command as its program does. Raises ReadError."""
    name, rest = words[0], words[1:]
    try:
        options, rest = program.parser.parse_known_args(rest)
        if options.deferred_help or not rest:
            return
        factory, found, arguments = _found(program, name, rest)
        factory(program, options).get_parser(f"{name} {found}").parse_args(arguments)
    except (SystemExit, ValueError) as error:
        raise ReadError(f"{shlex.join(words)}: {error}") from error


def _found(program: Program, name: str, words: list[str]) -> tuple[Any, str, list[str]]:
    if name == "micronova":
        return program.commands.find_command(words)
    known, length = _openstack_commands(), len(words)
    for end in range(length, 0, -1):
        if (found := " ".join(words[:end])) in known:
            return known[found].load(), found, words[end:]
    raise ValueError("openstack has no such command")


@functools.cache
def _openstack_commands() -> Mapping[str, EntryPoint]:
    """The commands of openstack and its plugins, also those that `micronova` leaves out."""
    groups = ("common", "extension", "compute.v2", "identity.v3", "image.v2", "network.v2")
    groups += ("volume.v3", "placement.v1", "micronova.v1")
    return {
        one.name.replace("_", " "): one
        for group in groups
        for one in entry_points(group=f"openstack.{group}")
    }


def commands(text: str) -> Iterator[list[str]]:
    """Yield the commands of ours and of openstack that a shell's text has."""
    text = re.sub(r"\\\n\s*", " ", text)
    for line in text.splitlines():
        words = _words(line.strip())
        for is_end, group in itertools.groupby(words, lambda word: word in _ENDS):
            command = [word.rpartition("/")[2] if i == 0 else word for i, word in enumerate(group)]
            while command and re.fullmatch(r"\w+=.*", command[0]):
                command = command[1:]
            if not is_end and command and command[0] in _OUR_WORDS:
                yield command


def without_placeholders(line: str) -> str:
    """Return a line with a 1 for each of what stands for something of the reader's."""
    return _PLACEHOLDER.sub("1", line)


def _words(line: str) -> list[str]:
    line = _COMMENT.sub("", f" {line}").strip()
    # "and so on"; the variable of a loop; a name or number of the reader's
    line = re.sub(r"(?<=\s)…(?=\s|$)", "", line).replace("$interface", "public")
    line = without_placeholders(line)
    if line.split(" ", 1)[0] in _OUR_WORDS and not line.startswith("openstack endpoint"):
        line = _COLUMN.split(line, maxsplit=1)[0]
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(lexer)


def is_shell(program: Program, block: Block) -> None:
    """Have bash read the text, and the commands' own parsers the commands."""
    script = re.sub(r"<[^<>|\n]+>", "x", block.text)
    if not any(_COLUMN.search(line.strip()) for line in script.splitlines()):
        done = subprocess.run(
            ["bash", "-n"], input=script, text=True, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
    for words in commands(block.text):
        read_command(program, words)


# --- options


def _known_options() -> Mapping[str, Mapping[str, cfg.Opt]]:
    found: dict[str, dict[str, cfg.Opt]] = {
        group: {name.replace("-", "_"): option for name, option in options.items()}
        for group, options in sample.options().items()
    }
    return found


def is_configuration(_: Program, block: Block) -> None:
    """Have oslo.config's types take every value; every option must be one of ours."""
    known, group = _known_options(), "DEFAULT"
    for line in block.text.splitlines():
        text = line.strip().removeprefix("#") if re.match(r"#\w+ =", line) else line.strip()
        if not text or text.startswith("#"):
            continue
        if section := re.fullmatch(r"\[(.+)\]", text):
            group = "proxmox:<cluster>" if section[1].startswith("proxmox:") else section[1]
            assert group in known, f"{block}: [{group}]"
            continue
        name, equals, value = (part.strip() for part in text.partition("="))
        assert equals, f"{block}: {text}"
        assert name in known[group], f"{block}: [{group}] {name}"
        if not _PLACEHOLDER.search(value):
            known[group][name].type(value)


# --- other forms


def is_yaml(_: Program, block: Block) -> None:
    """Have the text read as YAML."""
    assert all(yaml.safe_load_all(block.text))


def is_python(_: Program, block: Block) -> None:
    """Have the text compiled."""
    compile(block.text, str(block), "exec")


def is_read_elsewhere(_: Program, block: Block) -> None:
    """Nothing: output, pictures, and what a test of its own runs."""
    assert block.text.strip()


FORMS: Mapping[str, Callable[[Program, Block], None]] = {
    "": is_shell,
    "ini": is_configuration,
    "yaml": is_yaml,
    "python": is_python,
    # tests/unit/docs/test_kubernetes.py, with the options of its programs; tests/compat/heat
    "conf": is_read_elsewhere,
    # tests/compat/heat runs it, by an `openstack` that has more commands
    "bash": is_read_elsewhere,
    # tests/functional/pages plays it, and compares what is printed
    "console": is_read_elsewhere,
    # tests/contract/test_printed_terraform.py sends its requests
    "hcl": is_read_elsewhere,
    # what a program prints, and how its words are put together
    "text": is_read_elsewhere,
    # docs/states.md is generated, and compared
    "mermaid": is_read_elsewhere,
    # tests/compat/skyline and tests/functional/test_printed_deployment.py run nginx with it, and
    # the latter PostgreSQL
    "nginx": is_read_elsewhere,
    "sql": is_read_elsewhere,
}


@pytest.mark.parametrize("block", every_block(), ids=str)
def test_a_block_is_read_by_what_it_is_for(program: Program, block: Block) -> None:
    FORMS[block.language](program, block)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_sentences_exist(program: Program, page: Any) -> None:
    for text in inline_commands(page):
        for words in commands(text):
            _exists(program, words, text)


def _exists(program: Program, words: list[str], text: str) -> None:
    """Find the command, and know its options: a sentence needn't say its arguments."""
    options, rest = program.parser.parse_known_args(words[1:])
    if options.deferred_help or not rest:
        return
    if any(name.startswith(" ".join(rest) + " ") for name in _openstack_commands()):
        return  # the commands that begin so
    try:
        factory, found, arguments = _found(program, words[0], rest)
    except ValueError as error:
        raise AssertionError(f"{text}: {error}") from error
    parser: argparse.ArgumentParser = factory(program, options).get_parser(found)
    known = {option for action in parser._actions for option in action.option_strings}
    given = {word.partition("=")[0] for word in arguments if word.startswith("--")}
    assert given <= known, f"{text}: {given - known}"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("", "micronova nothing"),
        ("", "micronova node list --nothing   hosts"),
        ("", "x=1 openstack server create web | cat"),
        ("", "if true"),
        ("ini", "[compute]\nnothing = 1"),
        ("ini", "[nothing]\nworker = 1"),
        ("ini", "[api]\nservice_down_seconds = soon"),
        ("python", "x ="),
    ],
)
def test_what_a_program_does_not_take_is_found(program: Program, language: str, text: str) -> None:
    with pytest.raises((ReadError, AssertionError, ValueError, SyntaxError)):
        FORMS[language](program, Block("page.md", 1, language, text))
