"""What import-linter can't say: names, not modules."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.unit.sources import ROOT, imported, imports, named, nodes, tree

PARTS = (
    "api",
    "cli",
    "common",
    "compute",
    "identity",
    "launcher",
    "placement",
    "scheduler",
    "micronova",
    "web",
)
UNIT = ROOT / "tests" / "unit"
OPENERS = ("dashboard.sessions.sqlite.", "db.engine.", "psycopg.", "pymysql.", "sqlite3.")


def test_only_the_conductor_opens_the_cloud_database_for_writing() -> None:
    """`db.engine.writer` is the conductor's; `db` itself migrates with it."""
    found = []
    for part in PARTS:
        for path in (ROOT / part).rglob("*.py"):
            # To parse each file would take longer than most tests.
            named = "writer" in path.read_text(encoding="utf-8")
            if named and imports_engine(path) and "writer" in names(path):
                found.append(str(path.relative_to(ROOT)))
    assert found == []


def test_unit_tests_open_no_database() -> None:
    """Neither SQLite nor a driver: those that do are in `tests/functional`."""
    assert [str(path.relative_to(ROOT)) for path in UNIT.rglob("*.py") if opens(path)] == []


def opens(path: Path) -> bool:
    """Whether a module imports what opens a database, or makes an engine itself."""
    return any(f"{name}.".startswith(OPENERS) for name in imported(path)) or any(
        isinstance(one, ast.Call) and named(one) == "create_engine" for one in nodes(path)
    )


def imports_engine(path: Path) -> bool:
    return any(f"{name}.".startswith("db.engine.") for name in imported(path))


def names(path: Path) -> set[str]:
    attributes = {node.attr for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute)}
    return attributes | {
        alias.name
        for node in imports(path)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
