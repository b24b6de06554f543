"""docs/cli.md says what the commands declare."""

from __future__ import annotations

from pathlib import Path

from cli.commands import COMMANDS
from cli.reference import reference

PAGE = Path(__file__).resolve().parents[3] / "docs" / "cli.md"


def test_the_reference_is_current() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == reference(), "write it again: python -m cli.reference docs/cli.md"


def test_every_command_is_in_it() -> None:
    page = reference()
    assert [name for name in COMMANDS if f"### `micronova {name}" not in page] == []
