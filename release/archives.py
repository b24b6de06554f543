"""The sdist and the wheel of a tree: the same bytes wherever and whenever they are made."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

_UMASK = 0o022
"""The modes of files are in the archives."""


def epoch(tree: Path) -> int:
    """Return the time of the tree's commit, in seconds."""
    shown = ["git", "-C", str(tree), "show", "--no-patch", "--format=%ct", "HEAD"]
    return int(subprocess.run(shown, check=True, capture_output=True, text=True).stdout)


def make(tree: Path, into: Path) -> list[Path]:
    """Make both archives of a clean clone; return their paths in the folder `into`.

    The wheel is made of what the sdist has, so that their contents are the same.
    """
    moment = epoch(tree)
    # Those that build the archives are the tested ones, too.
    # As a URL: pip splits what it reads of the environment at spaces.
    constraints = (tree / "etc" / "constraints.txt").absolute().as_uri()
    environment = {
        **os.environ,
        "SOURCE_DATE_EPOCH": str(moment),
        "PIP_CONSTRAINT": constraints,
        "PIP_BUILD_CONSTRAINT": constraints,
        "PYTHONHASHSEED": "0",
    }
    _build("--sdist", tree, into, environment)
    [sdist] = into.glob("*.tar.gz")
    sdist.write_bytes(normal(sdist.read_bytes(), moment))
    if missing := tracked(tree) - members(sdist):
        raise RuntimeError(f"The sdist lacks {', '.join(sorted(missing))}: see MANIFEST.in")
    with tempfile.TemporaryDirectory() as folder, tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
        [source] = Path(folder).iterdir()
        _build("--wheel", source, into, environment)
    [wheel] = into.glob("*.whl")
    return [sdist, wheel]


def _build(kind: str, tree: Path, into: Path, environment: Mapping[str, str]) -> None:
    words = [sys.executable, "-m", "build", kind, "--outdir", str(into), str(tree)]
    done = subprocess.run(
        words, env=environment, umask=_UMASK, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{kind} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


_OF_GIT = frozenset({".gitignore"})


def tracked(tree: Path) -> set[str]:
    """Return the files of a clone's commit that mean something outside git, too."""
    words = ["git", "-C", str(tree), "ls-files", "-z"]
    listed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return set(listed.split("\0")) - {""} - _OF_GIT


def members(sdist: Path) -> set[str]:
    """Return the files of an sdist, as the tree has them."""
    with tarfile.open(sdist) as archive:
        return {one.name.partition("/")[2] for one in archive if one.isfile()}


def normal(sdist: bytes, moment: int) -> bytes:
    """Return the archive with sorted members that are root's and of one moment.

    setuptools heeds SOURCE_DATE_EPOCH in wheels only.
    """
    made = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(sdist)) as old,
        gzip.GzipFile(fileobj=made, mode="wb", filename="", mtime=moment) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda one: one.name):
            member.uid = member.gid = 0
            member.uname = member.gname = "root"
            member.mtime = moment
            member.pax_headers = {}
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    return made.getvalue()
