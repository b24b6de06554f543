"""What the next page says: "Done" only of what is done."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from dashboard.pages.scaling import groups
from dashboard.pages.server import actions as of_servers
from dashboard.pages.server_list import BULK
from dashboard.pages.volume import actions as of_volumes
from tests.unit import sources

PAGES = sources.ROOT / "dashboard" / "pages"
#: what is under way
GOES_ON = re.compile(r"\b(is|are|has|have) (being|begun)\b")


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield where each function is that says that something is under way."""
    for path in sorted(PAGES.rglob("*.py")):
        for node in sources.nodes(path):
            if isinstance(node, ast.FunctionDef) and GOES_ON.search(" ".join(_texts(node))):
                yield f"{path.relative_to(PAGES)}:{node.name}", node


def _texts(function: ast.FunctionDef) -> Iterator[str]:
    for statement in function.body[ast.get_docstring(function) is not None :]:
        for node in ast.walk(statement):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


@pytest.mark.parametrize("function", [pytest.param(one, id=where) for where, one in functions()])
def test_a_page_that_says_that_something_is_under_way_says_so_first(
    function: ast.FunctionDef,
) -> None:
    calls = [one for one in ast.walk(function) if isinstance(one, ast.Call)]
    sent = {sources.named(one) for one in calls}
    assert "change" not in sent
    notes = [ast.unparse(one) for one in calls if sources.named(one) == "note"]
    begins = sent & {"begin", "_act"} or any("begun" in one for one in notes)
    assert begins or not sent & {"note", "changed"}


def test_the_pages_are_found() -> None:
    found = {where for where, _ in functions()}
    assert {"images.py:take", "nodes.py:drain", "migrations.py:abort"} <= found


def test_each_action_says_what_is_under_way_or_done() -> None:
    for one in (*of_servers.ACTIONS.values(), *of_volumes.ACTIONS.values()):
        assert one.says.endswith("."), one.name
        assert bool(GOES_ON.search(one.says)) <= (not one.is_done), one.name
    for group in groups._ACTIONS.values():
        assert GOES_ON.search(group.says), group.key
    for bulk in BULK.values():
        assert bulk.says.startswith("being "), bulk.name
