"""The migrations of both databases are one row each."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("database", ["db", "placement/db"])
def test_each_follows_another_one(database: str) -> None:
    """Two that were made side by side, and both follow the same one, stop every upgrade."""
    config = Config()
    config.set_main_option("script_location", str(ROOT / database / "migrations"))
    scripts = ScriptDirectory.from_config(config)
    assert len(scripts.get_heads()) == 1, scripts.get_heads()
    assert len(scripts.get_bases()) == 1
    names = [Path(script.path).stem for script in scripts.walk_revisions()]
    assert names == sorted(names, reverse=True)
