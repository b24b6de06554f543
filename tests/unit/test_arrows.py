"""What import-linter can't say: names, not modules."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tests.unit.sources import ROOT, nodes

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
            there = nodes(path)
            imports_engine = any(
                isinstance(node, ast.ImportFrom)
                and (
                    node.module == "db.engine"
                    or (node.module == "db" and any(a.name == "engine" for a in node.names))
                )
                for node in there
            )
            if imports_engine and "writer" in names(there):
                found.append(str(path.relative_to(ROOT)))
    assert found == []


def names(there: Sequence[ast.AST]) -> set[str]:
    attributes = {node.attr for node in there if isinstance(node, ast.Attribute)}
    return attributes | {
        alias.name for node in there if isinstance(node, ast.ImportFrom) for alias in node.names
    }
