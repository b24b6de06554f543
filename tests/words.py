"""The dialect that docstrings, comments, logs, help texts and pages don't use.

``python -m tests.words [folder …]`` lists where it is used, with what to say instead.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.process.child import ROOT

INSTEAD: Mapping[str, str] = {
    r"told": "notified, sent, configured, reported, said",
    r"tells?": "reports, says, shows, notifies",
    r"telling": "reporting, saying",
    r"untold": "not reported",
    r"heard(?: of| from)?": "received, reported, on_outcome",
    r"whoever": "the process (user, client) that",
    r"whosever": "whose",
    r"anew": "again",
    r"meanwhile": "in between, at the same time, since then",
    r"of which": "name the thing again",
    r"what is there": "what exists, the current …",
    r"goes(?: with| by)?": "is deleted, follows, depends on, moves",
    r"stays": "remains, is left, is not removed",
    r"keeps": "retains, holds, stores, does not remove",
    r"has it": "name who has what",
    r"one that": "a … that (name the thing)",
    r"(?:the|a|its|an agent's|their) word (?:of|on)": "the outcome, the report",
    r"as it were": "(leave it out)",
}
"""{regular expression: what to say instead}"""

DIALECT = re.compile(r"\b(?:" + "|".join(INSTEAD) + r")\b", re.IGNORECASE)
_LOGS = frozenset({"debug", "info", "warning", "error", "exception", "critical"})


@dataclass(frozen=True)
class Use:
    """A place where the dialect is used."""

    path: str
    line: int
    word: str

    def __str__(self) -> str:
        instead = next(
            plain for dialect, plain in INSTEAD.items() if re.fullmatch(dialect, self.word, re.I)
        )
        return f"{self.path}:{self.line}: {self.word!r}: say {instead}"


def uses_in(path: Path) -> Iterator[Use]:
    """Yield the uses in a module or a page."""
    name = str(path.relative_to(ROOT))
    text = path.read_text(encoding="utf-8")
    if DIALECT.search(text) is None:
        return
    read = parts(text) if path.suffix == ".py" else enumerate(text.splitlines(), 1)
    for first, part in read:
        for offset, line in enumerate(part.splitlines()):
            for match in DIALECT.finditer(line):
                yield Use(name, first + offset, match[0])


def parts(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of comments, docstrings, log lines and help texts."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        for constant in _read_by_people(node):
            yield constant.lineno, str(constant.value)


def _read_by_people(node: ast.AST) -> Iterator[ast.Constant]:
    found: list[ast.AST] = []
    if isinstance(node, ast.Expr):
        found = [node.value]
    elif isinstance(node, ast.keyword) and node.arg == "help":
        found = list(ast.walk(node.value))
    elif isinstance(node, ast.Call) and _called(node) in _LOGS:
        found = list(node.args[:1])
    yield from (one for one in found if isinstance(one, ast.Constant) and _is_text(one))


def _called(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", None) or getattr(call.func, "id", ""))


def _is_text(one: ast.Constant) -> bool:
    return isinstance(one.value, str)


def files(folders: Sequence[str]) -> Iterator[Path]:
    """Yield the modules and pages below the folders, or the files themselves."""
    for folder in folders:
        path = ROOT / folder
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))
        yield from () if path.is_file() else sorted(path.rglob("*.md"))


if __name__ == "__main__":
    for file in files(sys.argv[1:]):
        for use in uses_in(file):
            print(use)
