"""The blocks of the documentation's pages, for tests that run what the pages print."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(?<!`)`((?:micronova|openstack) [^`=\n]+(?: [^`\n]+)?)`(?!`)")
_INLINE_OF_NODES = re.compile(r"(?<!`)`((?:pvesh|pvesm|pveum|qm) [^`\n]+)`(?!`)")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    """The page's path in the tree."""
    line: int
    language: str
    """What the fence says; empty: commands of a shell."""
    text: str

    def __str__(self) -> str:
        """Return where it is."""
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(str(page.relative_to(ROOT)), line, found[2], found[3])


def every_block() -> list[Block]:
    """Return the blocks of all pages."""
    return [block for page in PAGES for block in blocks(page)]


def block(page: str, language: str, having: str) -> str:
    """Return the text of the one block of a page and language that has some text."""
    [found] = [
        one.text for one in blocks(ROOT / page) if one.language == language and having in one.text
    ]
    return found


def placed(text: str, places: Mapping[str, str]) -> str:
    """Return what a page prints in other places; of two that fit the first one counts."""
    if not places:
        return text
    return re.sub("|".join(map(re.escape, places)), lambda found: places[found[0]], text)


def without(text: str, beginnings: Iterable[str]) -> str:
    """Return the commands of a block but those that begin so."""
    return "\n".join(one for one in text.splitlines() if not one.startswith(tuple(beginnings)))


def inline_commands(page: Path) -> Iterator[str]:
    """Yield the commands that stand in a page's sentences."""
    yield from (found[1] for found in _INLINE.finditer(sentences(page)))


def inline_node_commands(page: Path) -> Iterator[str]:
    """Yield those that root enters on a node of Proxmox VE."""
    yield from (found[1] for found in _INLINE_OF_NODES.finditer(sentences(page)))


def sentences(page: Path) -> str:
    """Return what a page has beside its blocks."""
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))
