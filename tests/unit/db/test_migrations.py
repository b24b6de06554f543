"""The migrations of both databases are one row each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from common.databases.migrations import Phase

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("database", ["db", "placement/db"])
def test_each_follows_another_one(database: str, phase: Phase) -> None:
    """Two that were made side by side, and both follow the same one, stop every upgrade."""
    folder = ROOT / database / "migrations"
    scripts = ScriptDirectory(str(folder), version_locations=[str(folder / phase.value[0])])
    names = [Path(script.path).stem for script in scripts.walk_revisions()]
    # a file's name is its revision's: how far a database is is compared with the files
    assert names == [script.revision for script in scripts.walk_revisions()]
    assert names == sorted(names, reverse=True)
    assert len(scripts.get_heads()) == len(scripts.get_bases()) == min(1, len(names))
    assert names or phase is Phase.CONTRACT
    letter = "r" if phase is Phase.EXPAND else "c"
    assert all(re.fullmatch(rf"{letter}[0-9]{{4}}_\w+", name) for name in names)
