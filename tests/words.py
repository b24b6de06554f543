"""The dialect that no text of the product uses: docstrings, comments, strings, templates, pages.

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
    r"(?:un)?heard(?: of| from)?": "received, reported, on_outcome",
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
    r"(?-i:Have)(?: (?!that\b|as\b)[\w'-]+){1,7} be": "Set … to, record, make",
    r"as it were": "(leave it out)",
}
"""{regular expression: what to say instead}"""

DIALECT = re.compile(
    r"\b(?:" + "|".join(INSTEAD).replace(" ", r"\s+") + r")\b(?!\()", re.IGNORECASE
)
#: templates and scripts of ours; what others wrote is below these folders
_PAGES = ("*.md", "*.html", "*.js", "*.yaml", "*.sample")
_OF_OTHERS = frozenset({"vendor", "novnc"})
#: functions whose strings are not prose: patterns and SQL
_NO_PROSE = frozenset({"re", "text", "exec_driver_sql"})


NAMES = re.compile(
    r"(?:^|_)(?:told|tells?|telling|(?:un)?heard|untold|anew|meanwhile|whoever)(?:_|$)"
)
"""Parts of names of functions, arguments and variables that say nothing to a stranger."""


@dataclass(frozen=True)
class Use:
    """A place where the dialect is used."""

    path: str
    line: int
    word: str

    def __str__(self) -> str:
        instead = next(
            plain
            for dialect, plain in INSTEAD.items()
            if re.fullmatch(dialect, " ".join(self.word.split()), re.I)
        )
        return f"{self.path}:{self.line}: {self.word!r}: say {instead}"


def uses_in(path: Path) -> Iterator[Use]:
    """Yield the uses in a module or a page."""
    name = str(path.relative_to(ROOT))
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from (Use(name, line, found) for line, found in names(text))
    if DIALECT.search(text) is None:
        return
    read = parts(text) if path.suffix == ".py" else [(1, text)]
    for first, part in read:
        for match in DIALECT.finditer(part):
            yield Use(name, first + part.count("\n", 0, match.start()), match[0])


def parts(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of comments and of all strings that people read.

    Not those of one word, which are keys and names, nor patterns and SQL.
    """
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for constant in _strings(ast.parse(text)):
        if " " in constant.value:
            yield constant.lineno, constant.value


def names(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the word of the dialect of names that a module gives."""
    for node in ast.walk(ast.parse(text)):
        given = [] if isinstance(node, ast.keyword) else [getattr(node, "name", "")]
        given += [node.arg] if isinstance(node, ast.arg) else []
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            given.append(node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            given.append(node.attr)
        for match in filter(None, map(NAMES.search, map(str.lower, filter(None, given)))):
            yield getattr(node, "lineno", 1), match[0].strip("_")


def _strings(node: ast.AST) -> Iterator[ast.Constant]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node
    elif not (isinstance(node, ast.Call) and _function(node.func) in _NO_PROSE):
        for child in ast.iter_child_nodes(node):
            yield from _strings(child)


def _function(called: ast.expr) -> str:
    """Return the name of a function, or of the module `re` for one of its functions."""
    if isinstance(called, ast.Attribute):
        module = called.value
        return "re" if isinstance(module, ast.Name) and module.id == "re" else called.attr
    return called.id if isinstance(called, ast.Name) else ""


def files(folders: Sequence[str]) -> Iterator[Path]:
    """Yield the modules, pages and templates below the folders, or the files themselves."""
    for folder in folders:
        path = ROOT / folder
        found = (
            [path]
            if path.is_file()
            else [one for end in ("*.py", *_PAGES) for one in sorted(path.rglob(end))]
        )
        yield from (one for one in found if _OF_OTHERS.isdisjoint(one.parts))


if __name__ == "__main__":
    for file in files(sys.argv[1:]):
        for use in uses_in(file):
            print(use)
