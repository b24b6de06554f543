"""Refusals are short: Heat stores 255 characters of one, with words of its own in front."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.compute.views.faults import LONGEST, brief
from common.failures import RULES
from common.messages.reports import Category
from common.story.failure_words import NOUNS, owner_sentence
from tests.unit import sources

ROOT = Path(__file__).resolve().parents[2]
#: what a value that is filled in takes, about
VALUE = 12
#: sentences of Nova and Cinder, which clients know
THEIRS = (
    "Cannot remove host from aggregate ",
    "Invalid volume: Retype needs volume to be in available state",
    "Invalid volume: Volume status must be ",
)


def refusals() -> Iterator[tuple[str, str]]:
    """Yield (where, text) of what is raised for a client."""
    for part in ("api", "common", "conductor", "scheduler", "web"):
        for path in sorted((ROOT / part).rglob("*.py")):
            for node in sources.nodes(path):
                if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                    for argument in node.exc.args:
                        yield f"{path.relative_to(ROOT)}:{node.lineno}", _text(argument)


def _text(argument: ast.expr) -> str:
    if isinstance(argument, ast.Constant):
        return str(argument.value)
    if isinstance(argument, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "x" * VALUE
            for part in argument.values
        )
    return ""


def test_what_is_raised_is_short() -> None:
    found = [
        (where, len(text), text)
        for where, text in refusals()
        if len(text) > LONGEST and not text.startswith(THEIRS)
    ]
    assert found == []


@pytest.mark.parametrize("category", Category)
def test_what_owners_read_of_a_failure_is_short(category: Category) -> None:
    said = [RULES[category].user, *(owner_sentence(category, kind) for kind in NOUNS)]
    assert max(map(len, said)) <= LONGEST


def test_the_fault_of_a_server_has_whole_sentences() -> None:
    first, second = "None of 6 hosts has room.", "y" * LONGEST
    assert brief(first) == first
    assert brief(f"{first} {second}") == first
    assert brief(second + "y") == "y" * (LONGEST - 1) + "…"
