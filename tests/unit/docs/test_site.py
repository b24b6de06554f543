"""The documentation's site is built strictly, and loads nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.pages import ROOT

#: what a browser loads by itself; links of texts are followed by readers only
_LOADED = re.compile(r'<(?:script|img|iframe|link)\b[^>]*(?:src|href)="?((?:https?:)?//[^"\s>]+)')
_LOADED_BY_STYLE = re.compile(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')\s]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as the gate builds it."""
    made = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir"]
    done = subprocess.run(
        [*words, str(made)],
        cwd=ROOT,
        env={"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return made


def test_every_page_is_of_the_site(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    wanted = {
        page.with_name("index.html") if page.name == "README.md" else page.with_suffix(".html")
        for page in pages
    }
    built = {path.relative_to(site) for path in site.rglob("*.html")}
    assert wanted - built == set()
    assert Path("contributing.html") in built


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    found = {
        (str(path.relative_to(site)), url)
        for pattern, kind in ((_LOADED, "*.html"), (_LOADED_BY_STYLE, "*.css"))
        for path in site.rglob(kind)
        for url in pattern.findall(path.read_text(encoding="utf-8"))
    }
    assert found == set()


def test_words_are_found(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    assert "lost-node.html" in index


def test_what_is_built_is_ignored_and_not_packed() -> None:
    read = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    folder = yaml.safe_load(read)["site_dir"]
    assert folder.partition("/")[0] in (ROOT / ".gitignore").read_text(encoding="utf-8").split()


def test_a_link_to_nowhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# One\n\n[Two](#three)\n", encoding="utf-8")
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    settings |= {"nav": ["index.md"], "hooks": [], "site_dir": "made"}
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "no such anchor" in done.stderr
