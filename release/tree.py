"""A clone of a repository, in which a release is made before the repository has anything of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

VERSION = re.compile(r"^version = \S+$|^version = \"[^\"]+\"$", re.MULTILINE)
_FORM = re.compile(r"[1-9]\d*\.\d+\.\d+")
FRAGMENTS = "changes"
RELEASED = "release/released.json"
"""Names the newest release: {version, commit}."""
_NOT_FRAGMENTS = frozenset({"README.md"})


_PARTS: Mapping[str, int] = {"removed": 0, "added": 1, "changed": 1, "fixed": 2, "security": 2}
"""{type of a fragment: the part of the version that grows by it}, as SemVer says"""


class CannotRelease(Exception):
    """What is asked for can't be released; the text says why."""


@dataclass(frozen=True)
class Repository:
    """A git repository with a work tree."""

    path: Path

    def git(self, *words: str) -> str:
        """Run git in it; return what it prints."""
        done = subprocess.run(
            ["git", "-C", str(self.path), *words], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise CannotRelease(f"git {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def clone(self, folder: Path) -> Repository:
        """Return a clone of its commit, with the identity of its committer."""
        self.git("clone", "--quiet", "--shared", "--no-checkout", str(self.path), str(folder))
        made = Repository(folder)
        made.git("checkout", "--quiet", "--detach", self.git("rev-parse", "HEAD"))
        for name in ("user.name", "user.email"):
            made.git("config", name, self.git("config", name))
        return made


def fragments(repository: Repository) -> list[str]:
    """Return the names of the news fragments of a commit."""
    names = repository.git("ls-tree", "--name-only", f"HEAD:{FRAGMENTS}").splitlines()
    return [name for name in names if name not in _NOT_FRAGMENTS]


def refuse(repository: Repository, version: str) -> None:
    """Raise CannotRelease where the repository's commit can't become this version."""
    if not _FORM.fullmatch(version):
        raise CannotRelease(f"{version} is no version of the form 1.2.3.")
    if repository.git("status", "--porcelain"):
        raise CannotRelease("The tree has changes that are not committed.")
    if not fragments(repository):
        raise CannotRelease("There are no news fragments in changes/: nothing to release.")
    if _numbers(version) <= _newest(repository):
        raise CannotRelease(f"{version} is not newer than what was released.")


def following(repository: Repository) -> str:
    """Return the version that a commit becomes: what its fragments add to the newest release."""
    newest = _newest(repository)
    if not newest:
        return "1.0.0"
    kinds = [name.split(".")[-2] for name in fragments(repository)]
    grows = min((_PARTS[kind] for kind in kinds), default=2)
    grown = (*newest[:grows], newest[grows] + 1, 0, 0)
    return ".".join(str(number) for number in grown[:3])


def _newest(repository: Repository) -> tuple[int, ...]:
    """Return the numbers of the newest release: of a tag, or noted where a clone lacks tags."""
    found = [_numbers(tag) for tag in repository.git("tag", "--list", "v*").splitlines()]
    noted = repository.path / RELEASED
    if noted.exists():
        found.append(_numbers(json.loads(noted.read_text(encoding="utf-8"))["version"]))
    return max(found, default=())


def _numbers(tag: str) -> tuple[int, ...]:
    return tuple(int(one) for one in re.findall(r"\d+", tag))


def commit(clone: Repository, version: str) -> None:
    """Set the version, gather the changelog, commit and tag it in a clone."""
    for name in ("setup.cfg", "pyproject.toml"):
        path = clone.path / name
        text = path.read_text(encoding="utf-8")
        quoted = f'"{version}"' if path.suffix == ".toml" else version
        text, count = VERSION.subn(f"version = {quoted}", text)
        if count != 1:
            raise CannotRelease(f"{name} has {count} lines with a version, not one.")
        path.write_text(text, encoding="utf-8")
    words = [sys.executable, "-m", "towncrier", "build", "--yes", "--version", version]
    done = subprocess.run(words, cwd=clone.path, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotRelease(f"towncrier: {done.stdout}{done.stderr}")
    words = [sys.executable, "-m", "release.surfaces", f"release/surfaces/{version}.json"]
    done = subprocess.run(words, cwd=clone.path, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotRelease(f"release.surfaces: {done.stdout}{done.stderr}")
    clone.git("add", "--all")
    clone.git("commit", "--quiet", "--message", f"release: {version}")
    clone.git("tag", "--annotate", "--message", f"micronova {version}", f"v{version}")


def note(clone: Repository, version: str) -> None:
    """Commit which commit the release is: it can't name itself, and a clone may lack tags."""
    released = {"version": version, "commit": clone.git("rev-parse", f"v{version}^{{commit}}")}
    path = clone.path / RELEASED
    path.write_text(json.dumps(released, indent=1) + "\n", encoding="utf-8")
    clone.git("add", "--all")
    clone.git("commit", "--quiet", "--message", f"release: note the commit of {version}")


def released(repository: Repository) -> tuple[str, str] | None:
    """Return version and commit of the newest release; None: there is none, or it isn't in this
    clone."""
    path = repository.path / RELEASED
    if not path.exists():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    try:
        repository.git("cat-file", "-e", f"{found['commit']}^{{commit}}")
    except CannotRelease:
        return None
    return found["version"], found["commit"]


def take(repository: Repository, clone: Repository, version: str) -> None:
    """Bring commits and tag of a clone into the repository, on its present branch."""
    tag = f"refs/tags/v{version}"
    repository.git("fetch", "--quiet", "--no-tags", str(clone.path), "HEAD", f"{tag}:{tag}")
    repository.git("merge", "--quiet", "--ff-only", clone.git("rev-parse", "HEAD"))
