"""The revisions that the page for developers prints, after all those of this tree."""

from __future__ import annotations

from pathlib import Path

from common.databases.migrations import Migrations
from db import schema
from tests.pages import block

_PAGE = "docs/development/new-revision.md"
#: as the page's, which comes after the first release's
_PRINTED, _AFTER = "r0002_reservation", '"r0001_initial"'
EXPANDED, CONTRACTED = "r0999_reservation", "c0002_reservation"


def add(folder: Path) -> None:
    """Write them to a copy of `db/migrations`."""
    *_, newest = Migrations(folder, "cloud", schema.metadata).known().expanding
    for kind, name, printed in (
        ("versions", EXPANDED, _PRINTED),
        ("contractions", CONTRACTED, CONTRACTED),
    ):
        text = block(_PAGE, "python", f'"{printed}"').replace(_PRINTED, EXPANDED)
        text = text.replace(_AFTER, f'"{newest}"')
        (folder / kind / f"{name}.py").write_text(text, encoding="utf-8")
