"""The sources as trees, each parsed once for all tests that look at them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def tree(path: Path) -> ast.Module:
    """Return a module's tree."""
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def nodes(path: Path) -> Sequence[ast.AST]:
    """Return all nodes of a module, as ``ast.walk`` yields them."""
    return tuple(ast.walk(tree(path)))


def named(call: ast.Call) -> str:
    """Return the last part of what is called; empty for what has no name."""
    function = call.func
    return str(getattr(function, "attr", None) or getattr(function, "id", ""))


def imported(path: Path) -> frozenset[str]:
    """Return the full names of what a module imports: modules, and names in modules."""
    return frozenset(
        f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
        for node in imports(path)
        for alias in node.names
    )


@functools.cache
def imports(path: Path) -> Sequence[ast.Import | ast.ImportFrom]:
    """Return a module's imports, those within functions and branches included."""
    return tuple(_imports(tree(path)))


def _imports(parent: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    # Statements only: most of a tree is expressions, which hold no imports.
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        children = getattr(parent, field, ())
        for node in children if isinstance(children, list) else ():
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield node
            else:
                yield from _imports(node)
