"""Puts the site of this tree beside those of other releases, with a selector of versions.

    python -m release.site_versions FOLDER

FOLDER is what a web server serves: a folder for each version, `versions.json`, which the theme's
selector reads, and a first page that leads to the newest release.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from packaging.version import InvalidVersion, Version

from common.release import VERSION
from release.site import ROOT, WITH_VERSIONS

NEWEST = "latest"
_FIRST_PAGE = """<!doctype html>
<meta charset="utf-8">
<title>micronova</title>
<meta http-equiv="refresh" content="0; url={0}/index.html">
<a href="{0}/index.html">micronova {0}</a>
"""


def build(folder: Path) -> None:
    """Build the site of this tree below the folder."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    command += ["--site-dir", str((folder / VERSION).resolve())]
    environment = {**os.environ, WITH_VERSIONS: "1", "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def versions(names: Iterable[str]) -> list[Version]:
    """Return those names that are versions, the newest first."""
    found = []
    for name in names:
        try:
            found.append(Version(name))
        except InvalidVersion:
            continue  # a file, or another's folder
    return sorted(found, reverse=True)


def listed(found: Iterable[Version]) -> list[dict[str, object]]:
    """Return what the theme reads: the newest release is the latest, not one before a release."""
    every = list(found)
    releases = [one for one in every if not one.is_prerelease] or every
    return [
        {"version": str(one), "title": str(one), "aliases": [NEWEST] if one is releases[0] else []}
        for one in every
    ]


def write(folder: Path) -> None:
    """Write which versions are there, and the first page."""
    found = listed(versions(one.name for one in folder.iterdir() if one.is_dir()))
    (folder / "versions.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    newest = next(one["version"] for one in found if one["aliases"])
    (folder / "index.html").write_text(_FIRST_PAGE.format(newest), encoding="utf-8")


def main(folder: str) -> None:
    """Build, and list."""
    where = Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    build(where)
    write(where)


if __name__ == "__main__":
    main(*sys.argv[1:])
