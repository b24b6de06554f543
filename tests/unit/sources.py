"""The sources as trees, each read once for all tests that look at them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def nodes(path: Path) -> Sequence[ast.AST]:
    """Imports, attributes and whatever else is in a module."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
