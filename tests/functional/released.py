"""The newest release, installed in an environment of its own; and the release after this tree.

The wheel is made of the release's commit, which `release/released.json` names, and kept with its
environment in `.tox/released` (`MICRONOVA_TEST_RELEASED` names another folder).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from release import archives, tree
from release.tree import Repository
from tests.functional import next_revision
from tests.functional.distributed import Programs
from tests.pages import ROOT

FOLDER = Path(os.environ.get("MICRONOVA_TEST_RELEASED", ROOT / ".tox" / "released"))
EXTRAS = "postgresql,memcached"

CHANGES = {
    "db/schema.py": (
        'sa.Column("reservation_id", sa.String(32), nullable=False)',
        'sa.Column("reservation", sa.String(32), nullable=False, key="reservation_id")',
    ),
    "common/messages/commands.py": (
        '    """Plugged before it starts."""\n',
        '    """Plugged before it starts."""\n    haste: int = 7\n',
    ),
    "common/messages/facts.py": (
        '    machine_version: str = ""\n',
        '    phase: str = "waxing"\n    machine_version: str = ""\n',
    ),
    "common/rpc/events.py": (
        'version: str = "") -> None:',
        'version: str = "", mood: str = "") -> None:',
    ),
    "conductor/endpoints/events.py": (
        'version: str = "") -> None:',
        'version: str = "", mood: str = "") -> None:',
    ),
    "common/process/liveness.py": ("version=VERSION", 'version=VERSION, mood="calm"'),
}
"""{file: (text, what a next release has instead)}: a column renamed, new fields and arguments."""


def installed() -> Programs:
    """Return the newest release; skips the test where there is none in this clone."""
    repository = Repository(ROOT)
    found = tree.released(repository)
    if found is None:
        pytest.skip("release/released.json names no commit that this clone has")
    _, commit = found
    place = FOLDER / commit
    if not (place / "complete").exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        _install(repository, commit, place)
        (place / "complete").touch()
    return Programs(
        str(place / "venv" / "bin" / "python"), place / "run", place / "files" / "gunicorn.conf.py"
    )


def _install(repository: Repository, commit: str, place: Path) -> None:
    clone = Repository(place / "clone")
    repository.git("clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(clone.path))
    clone.git("checkout", "--quiet", "--detach", commit)
    dist = place / "dist"
    dist.mkdir()
    _, wheel = archives.make(clone.path, dist)
    python = place / "venv" / "bin" / "python"
    constraints = clone.path / "etc" / "constraints.txt"
    _run(sys.executable, "-m", "venv", place / "venv")
    _run(python, "-m", "pip", "install", "--quiet", "-c", constraints, f"{wheel}[{EXTRAS}]")
    _run(python.parent / "micronova", "files", place / "files")
    (place / "run").mkdir()
    shutil.rmtree(clone.path)


def _run(*words: object) -> None:
    done = subprocess.run([str(one) for one in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"


def next_one(folder: Path) -> Programs:
    """Return the release after this tree, in a folder: a copy of the commit with `CHANGES`."""
    Repository(ROOT).git("clone", "--quiet", "--shared", str(ROOT), str(folder))
    for name, (text, instead) in CHANGES.items():
        path = folder / name
        before = path.read_text(encoding="utf-8")
        assert before.count(text) == 1, f"{name}: {text}"
        path.write_text(before.replace(text, instead), encoding="utf-8")
    next_revision.add(folder / "db" / "migrations")
    metadata = folder / "micronova-99.0.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: micronova\nVersion: 99.0.0\n")
    return Programs(sys.executable, folder, folder / "etc" / "gunicorn.conf.py")
