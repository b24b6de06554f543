"""What may be released, and what `make release` makes of it."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from release import tree
from release.__main__ import chosen, parser
from release.tree import CannotRelease, Repository
from tests.fixtures.install_page import MAKES, RELEASE
from tests.pages import ROOT, block


def made_by(line: str) -> str:
    """Return what a printed line of make runs in tox's environment."""
    shown = subprocess.run(
        [*line.split(), "--dry-run"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    environment = MAKES[line][0]
    _, ran, given = shown.partition(f"tox run -q -e {environment} --")
    assert ran
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    [command] = tox[f"testenv:{environment}"]["commands"].splitlines()
    return command.replace("{posargs}", given.strip()).strip()


def test_what_is_printed_is_what_make_runs() -> None:
    assert [line for line in block(*RELEASE).splitlines() if line] == list(MAKES)
    assert {line: made_by(line) for line in MAKES} == {
        line: command for line, (_, command) in MAKES.items()
    }


def test_what_make_runs_is_a_version_that_can_be_released(tmp_path: Path) -> None:
    words = shlex.split(made_by("make release"))
    assert words[:3] == ["python", "-m", "release"]
    here = Repository(ROOT).clone(tmp_path / "clone")
    if not tree.fragments(here):
        (here.path / "changes" / "+one.fixed.md").write_text("A fix.\n")
        here.git("add", "--all")
        here.git("commit", "--quiet", "--message", "all: fix one")
    version = chosen(here, parser().parse_args(words[3:]).version)
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert version != "1.0.0"


@pytest.mark.parametrize(
    ("kinds", "version"),
    [
        ([], "1.4.8"),
        (["fixed", "security"], "1.4.8"),
        (["fixed", "added"], "1.5.0"),
        (["changed"], "1.5.0"),
        (["added", "removed", "fixed"], "2.0.0"),
    ],
)
def test_the_next_version_is_that_of_its_fragments(
    repository: Repository, kinds: list[str], version: str
) -> None:
    assert tree.following(repository) == "1.0.0"
    repository.git("rm", "--quiet", "changes/+first.added.md")
    for kind in kinds:
        (repository.path / "changes" / f"+one.{kind}.md").write_text("One.\n")
    (repository.path / tree.RELEASED).write_text('{"version": "1.4.7", "commit": "0"}')
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message", "all: change")
    assert tree.following(repository) == version
    repository.git("tag", "v3.0.0")
    assert tree.following(repository) > "3"


def test_the_kinds_are_those_of_the_changelog() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert set(re.findall(r'^directory = "(\w+)"\nname', text, re.MULTILINE)) == set(tree._PARTS)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with all that a release changes, and one fragment."""
    path = tmp_path / "repository"
    (path / "changes").mkdir(parents=True)
    for name in ("setup.cfg", "pyproject.toml"):
        shutil.copy(ROOT / name, path)
    head = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("below -->\n")
    (path / "CHANGELOG.md").write_text("".join(head[:2]))
    (path / "changes" / "README.md").write_text("# News fragments\n")
    (path / "changes" / "+first.added.md").write_text("Servers are made.\n")
    (path / "release").mkdir()
    (path / "release" / "surfaces.py").write_text(
        "import pathlib, sys\n"
        "pathlib.Path(sys.argv[1]).parent.mkdir()\n"
        "pathlib.Path(sys.argv[1]).write_text('{}')\n"
    )
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(path)], check=True)
    made = Repository(path)
    made.git("config", "user.name", "A maintainer")
    made.git("config", "user.email", "one@example.org")
    made.git("add", "--all")
    made.git("commit", "--quiet", "--message", "all: begin")
    return made


def test_a_release_is_made_in_a_clone_and_taken_from_there(
    repository: Repository, tmp_path: Path
) -> None:
    before = repository.git("rev-parse", "HEAD")
    clone = repository.clone(tmp_path / "clone")
    tree.commit(clone, "1.2.3")
    assert (repository.git("rev-parse", "HEAD"), repository.git("tag")) == (before, "")
    assert "## 1.2.3 (" in clone.git("show", "v1.2.3:CHANGELOG.md")
    assert "- Servers are made." in clone.git("show", "v1.2.3:CHANGELOG.md")
    assert "\nversion = 1.2.3\n" in clone.git("show", "v1.2.3:setup.cfg")
    assert '\nversion = "1.2.3"\n' in clone.git("show", "v1.2.3:pyproject.toml")
    assert tree.fragments(clone) == []
    assert "release/surfaces/1.2.3.json" in clone.git("ls-files")
    assert tree.released(clone) is None
    tree.note(clone, "1.2.3")
    tree.take(repository, clone, "1.2.3")
    made = clone.git("rev-parse", "v1.2.3^{commit}")
    assert repository.git("rev-parse", "main^") == made
    assert tree.released(repository) == ("1.2.3", made)
    assert repository.git("status", "--porcelain") == ""
    # the first needs a fragment to be followed
    with pytest.raises(CannotRelease, match="no news fragments"):
        tree.refuse(repository, "1.2.4")


@pytest.mark.parametrize("version", ["1", "1.0", "v1.0.0", "0.9.0", "1.0.0rc1", "1.0.0 "])
def test_a_version_has_three_numbers(repository: Repository, version: str) -> None:
    with pytest.raises(CannotRelease, match="form"):
        tree.refuse(repository, version)


def test_a_release_is_newer_than_all_others(repository: Repository) -> None:
    repository.git("tag", "v1.9.0")
    for version in ("1.9.0", "1.8.9", "1.2.30"):
        with pytest.raises(CannotRelease, match="not newer"):
            tree.refuse(repository, version)
    tree.refuse(repository, "1.10.0")


def test_a_release_that_is_not_in_a_clone_is_none(repository: Repository, tmp_path: Path) -> None:
    clone = repository.clone(tmp_path / "clone")
    tree.commit(clone, "1.2.3")
    tree.note(clone, "1.2.3")
    shallow = tmp_path / "shallow"
    words = ["git", "clone", "--quiet", "--depth", "1", f"file://{clone.path}", str(shallow)]
    subprocess.run(words, check=True)
    assert tree.released(Repository(shallow)) is None


def test_what_is_not_committed_is_not_released(repository: Repository) -> None:
    (repository.path / "setup.cfg").write_text("[metadata]\n")
    with pytest.raises(CannotRelease, match="not committed"):
        tree.refuse(repository, "1.0.0")
