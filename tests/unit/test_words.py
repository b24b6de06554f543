"""Docstrings, comments, texts, templates and pages are in plain technical English."""

from __future__ import annotations

import pytest

from common.process.child import ROOT
from tests import words

FOLDERS = (
    *(
        "api",
        "cli",
        "common",
        "compute",
        "conductor",
        "console",
        "dashboard",
        "db",
        "etc",
        "identity",
    ),
    *("launcher", "micronova", "placement", "release", "scheduler", "simulator", "web", "docs"),
    *("changes", "containers", "README.md", "CONTRIBUTING.md", "benchmarks", "tests"),
)
#: they have the dialect itself
EXAMPLES = {ROOT / "tests" / "words.py", ROOT / "tests" / "unit" / "test_words.py"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_uses_no_dialect(folder: str) -> None:
    files = (file for file in words.files([folder]) if file not in EXAMPLES)
    found = [str(use) for file in files for use in words.uses_in(file)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"""A start is told when it begins."""', ["told"]),
        ('x = "told"', []),
        ("# whoever asks\n", ["whoever"]),
        ('LOG.info("VM %s stays", 1)', ["stays"]),
        ('parser.add("--x", help="What goes")', ["goes"]),
        ('Refused(f"Host {host} has it.")', ["has it"]),
        ('"""A server\n    one\n    that waits."""', ["one\n    that"]),
        ('"""Have the volume be available."""', ["Have the volume be"]),
        ('re.compile("has it")', []),
        ('text("SELECT told FROM one")', []),
        ('"""The VM is left; the volume is deleted."""', []),
    ],
)
def test_what_is_read_by_people(text: str, expected: list[str]) -> None:
    found = [match for _, part in words.parts(text) for match in words.DIALECT.findall(part)]
    assert found == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def _told(x): ...", ["told"]),
        ("def f(heard_for): ...", ["heard"]),
        ("self._untold = 1\nanew: int = 2", ["anew", "untold"]),
        ("f(told=x.heard)\nwording = 1", []),
    ],
)
def test_names_that_a_module_gives(text: str, expected: list[str]) -> None:
    assert sorted(found for _, found in words.names(text)) == expected
