"""What import-linter can't say: names, not modules."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.unit.sources import ROOT, imports, tree

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


def imports_engine(path: Path) -> bool:
    return any(
        isinstance(node, ast.ImportFrom)
        and (
            node.module == "db.engine"
            or (node.module == "db" and any(a.name == "engine" for a in node.names))
        )
        for node in imports(path)
    )


def names(path: Path) -> set[str]:
    attributes = {node.attr for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute)}
    return attributes | {
        alias.name
        for node in imports(path)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
