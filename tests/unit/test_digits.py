"""Numbers are written with the digits 0 to 9: Python knows those of all scripts for numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.unit import sources

PARTS = (
    *("api", "benchmarks", "cli", "common", "compute", "conductor", "console", "dashboard", "db"),
    *("identity", "launcher", "micronova", "placement", "scheduler", "simulator", "web"),
)
#: methods of texts that take other scripts' digits and letters
_OF_ALL_SCRIPTS = {"isdigit", "isdecimal", "isnumeric", "isalnum"}


def modules() -> Iterator[Path]:
    for part in PARTS:
        yield from sorted((sources.ROOT / part).rglob("*.py"))


def where(path: Path, node: ast.expr) -> str:
    return f"{path.relative_to(sources.ROOT)}:{node.lineno}"


def test_no_pattern_takes_the_digits_of_all_scripts() -> None:
    found = [
        where(path, node)
        for path in modules()
        for node in sources.nodes(path)
        if isinstance(node, ast.Constant) and _has_digits(node.value)
        # a text of Proxmox VE's
        if "does not match the regex pattern" not in str(node.value)
    ]
    assert found == [], r"write [0-9] for \d"


def _has_digits(value: object) -> bool:
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    return isinstance(text, str) and "\\d" in text


def test_no_text_is_taken_for_a_number_unless_it_is_ascii() -> None:
    found = []
    for path in modules():
        nodes = sources.nodes(path)
        sure = {
            id(each)
            for node in nodes
            if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And)
            if any(_calls(value, {"isascii"}) for value in node.values)
            for each in node.values
        }
        found += [
            where(path, node)
            for node in nodes
            if isinstance(node, ast.Call)
            and _calls(node, _OF_ALL_SCRIPTS)
            and id(node) not in sure
        ]
    assert found == [], "use common.digits"


def _calls(node: ast.expr, names: set[str]) -> bool:
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return called and node.func.attr in names  # type: ignore[attr-defined]
