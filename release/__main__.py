"""``python -m release [VERSION]``: everything of a release, from a clone of the commit.

Without ``--apply`` it is a rehearsal: the archives are in ``dist/``, and the repository has no
commit and no tag of it. With it, the release's commit and tag are in the repository, too, once
all checks have passed. Publishing is up to you: push the tag, hand out the files of ``dist/``.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from release import archives, interpreters, tree
from release.constraints import PYTHONS
from release.tree import CannotRelease, Repository

ROOT = Path(__file__).resolve().parents[1]


def main(words: Sequence[str]) -> int:
    """Make a release, or rehearse one; return the exit code."""
    asked = parser().parse_args(words)
    try:
        repository = Repository(asked.repository)
        version = chosen(repository, asked.version)
        release(repository, version, asked.dist, asked.apply)
    except CannotRelease as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def chosen(repository: Repository, version: str | None) -> str:
    """Return the version to release. Raises CannotRelease for what can't be released."""
    version = version or tree.following(repository)
    tree.refuse(repository, version)
    return version


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="make release", description=__doc__)
    made.add_argument("version", nargs="?", help="default: the next one, by changes/")
    made.add_argument("--apply", action="store_true", help="commit and tag it, too")
    made.add_argument("--repository", type=Path, default=ROOT, help="default: this one")
    made.add_argument("--dist", type=Path, help="default: dist/ of the repository")
    return made


def release(repository: Repository, version: str, dist: Path | None, apply: bool) -> None:
    """Make, compare and check the archives of a version; `apply` says whether it counts."""
    with tempfile.TemporaryDirectory(prefix="micronova-release-") as folder:
        clone = repository.clone(Path(folder) / "first")
        tree.commit(clone, version)
        say(f"changelog: {len(tree.fragments(repository))} fragments; commit and tag v{version}")
        made = build_twice(clone, Path(folder))
        made.append(clone.path / "etc" / "constraints.txt")
        check(made[1], made[2])
        files = hand_out(made, dist or repository.path / "dist")
        if apply:
            tree.note(clone, version)
            tree.take(repository, clone, version)
    for path in files:
        say(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path}")
    say(
        f"v{version} is in this repository."
        if apply
        else "A rehearsal: nothing is committed or tagged. make release ARGS=--apply does both."
    )


def build_twice(clone: Repository, folder: Path) -> list[Path]:
    """Return sdist and wheel, which two builds in two folders made of the same bytes."""
    again = clone.clone(folder / "a second place")
    builds = []
    for one in (clone, again):
        into = folder / f"dist of {one.path.name}"
        into.mkdir()
        builds.append(archives.make(one.path, into))
    for first, second in zip(*builds, strict=True):
        if first.read_bytes() != second.read_bytes():
            raise CannotRelease(f"Two builds of {first.name} are not the same bytes.")
        say(f"{first.name}: two builds are the same bytes")
    return builds[0]


def check(wheel: Path, constraints: Path) -> None:
    """Install the wheel on each release of Python that is here."""
    known = interpreters.found()
    for version in PYTHONS:
        if version not in known:
            say(f"Python {version}: not on this machine, not tried")
            continue
        if wrong := interpreters.check(known[version], wheel, constraints):
            raise CannotRelease("\n".join([f"Python {version}:", *wrong]))
        say(f"Python {version}: installs by the constraints, pip check is clean")
    if not known:
        raise CannotRelease("No Python is here to try the wheel on.")


def hand_out(made: Sequence[Path], dist: Path) -> list[Path]:
    """Copy the files to where they are taken from, with their hashes; return their paths."""
    dist.mkdir(parents=True, exist_ok=True)
    files = [Path(shutil.copy(path, dist)) for path in made]
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (dist / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
    return files


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
