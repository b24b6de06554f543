"""Writes the initial revision of a database out of its schema: ``python -m tests.migration``.

A test says when a written one is behind. Once a release has been made the revision is history:
it is never written again, and a change of the schema is a revision of its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import sqlalchemy as sa
from alembic.autogenerate import produce_migrations, render_python_code
from alembic.autogenerate.api import AutogenContext
from alembic.migration import MigrationContext

import db.schema
import placement.db.schema

ROOT = Path(__file__).parent.parent
REVISION = "r0001_initial"
_OWN_TYPES = "db.types"
#: what alembic writes though it is the default, or says twice
_SAID_ANYWAY = (
    (r", unique=False\b", ""),
    (r"\blength=", ""),
    (r"\bop\.f\(('[^']*')\)", r"\1"),
    (r"\b(Integer|BigInteger|Boolean|Text|Float)\(\)", r"\1"),
)

_CONSTANTS: Mapping[type, str] = {
    type(sa.true()): "sa.true()",
    type(sa.false()): "sa.false()",
}


@dataclass(frozen=True)
class Database:
    """A database with an initial revision."""

    metadata: sa.MetaData
    folder: str
    sentence: str

    @property
    def path(self) -> Path:
        """Where the revision is; ``first_rows.py`` beside the folder has what it inserts."""
        return ROOT / self.folder / "versions" / f"{REVISION}.py"


DATABASES: Mapping[str, Database] = {
    "cloud": Database(db.schema.metadata, "db/migrations", "Create the cloud database."),
    "placement": Database(
        placement.db.schema.metadata, "placement/db/migrations", "Create the placement database."
    ),
}


def written(database: Database) -> str:
    """Return the revision as it belongs in the tree."""
    imports = {f"from {database.folder.replace('/', '.')} import first_rows"}
    tables = _rendered(database.metadata)
    own = sorted(name for name in vars(db.types) if re.search(rf"\b{name}\b[,)]", tables))
    imports |= {f"from {_OWN_TYPES} import {name}" for name in own}
    text = f'''"""{database.sentence}

Written by tests/migration.py.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
{chr(10).join(sorted(imports))}

revision = "{REVISION}"
down_revision: str | None = None


def upgrade() -> None:
    """Create all tables, and the rows that a new database has."""
    {_indented(tables)}
    first_rows.insert(op.get_bind())

'''
    return _formatted(text, database.path)


def _rendered(metadata: sa.MetaData) -> str:
    """Return the statements that create the tables."""
    with sa.create_engine("sqlite://").connect() as connection:
        context = MigrationContext.configure(connection, opts={"render_item": _render_item})
        script = produce_migrations(context, metadata)
        assert script.upgrade_ops is not None
        text = render_python_code(
            script.upgrade_ops, migration_context=context, render_item=_render_item
        )
    for pattern, instead in _SAID_ANYWAY:
        text = re.sub(pattern, instead, text)
    return text


def _render_item(kind: str, item: object, _context: AutogenContext) -> str | Literal[False]:
    """Return a type of this project, and a constant of all dialects; False: alembic renders it."""
    if kind == "server_default":
        constant = type(getattr(item, "arg", None))
        return _CONSTANTS.get(constant, False)
    if kind != "type":
        return False
    named = (name for name, one in vars(db.types).items() if one is item)
    own = type(item).__name__ if type(item).__module__ == _OWN_TYPES else None
    return next(named, own) or False


def _indented(text: str) -> str:
    lines = (line for line in text.splitlines() if not line.strip().startswith("#"))
    return "\n    ".join(line.strip() for line in lines)


def _formatted(text: str, path: Path) -> str:
    """Return it as ``ruff`` writes it."""
    for arguments in (("check", "--fix", "--select", "I", "--quiet"), ("format",)):
        text = subprocess.run(
            [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", str(path), "-"],
            cwd=ROOT,
            input=text,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return text


if __name__ == "__main__":
    for chosen in sys.argv[1:] or DATABASES:
        DATABASES[chosen].path.write_text(written(DATABASES[chosen]), encoding="utf-8")
