"""A wheel with its constraints on each release of Python that this machine has."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from packaging.utils import canonicalize_name

from release.constraints import EXTRAS, PYTHONS, pinned

TYPED = Path("micronova", "py.typed")
_TOOLS = frozenset({"pip", "micronova"})


def found() -> dict[str, str]:
    """Return {version: program} of those that run here."""
    every = {version: next(_programs(version), None) for version in PYTHONS}
    return {version: path for version, path in every.items() if path}


def _programs(version: str) -> Iterator[str]:
    """Yield those of the path that run: pyenv has a shim for each release, chosen or not."""
    for folder in os.get_exec_path():
        program = shutil.which(f"python{version}", path=folder)
        if program and _runs(program):
            yield program


def _runs(program: str) -> bool:
    words = [program, "-c", "import ensurepip, venv"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def check(program: str, wheel: Path, constraints: Path) -> list[str]:
    """Install a wheel for services into an empty environment; return what is wrong with it."""
    with tempfile.TemporaryDirectory(prefix="micronova-release-") as folder:
        return list(_wrong(program, wheel, constraints, Path(folder)))


def _wrong(program: str, wheel: Path, constraints: Path, folder: Path) -> Iterator[str]:
    python, tool = folder / "bin" / "python", folder / "bin" / "micronova"
    _run(program, "-m", "venv", folder)
    what = f"{wheel}[{','.join(EXTRAS)}]"
    _run(python, "-m", "pip", "install", "--quiet", "--constraint", constraints, what)
    try:
        _run(python, "-m", "pip", "check")
        _run(tool, "--version")
        _run(tool, "files", folder / "files")
    except subprocess.CalledProcessError as error:
        yield f"{error.cmd}: {error.stdout}{error.stderr}"
    listed = json.loads(_run(python, "-m", "pip", "list", "--format", "json"))
    known = pinned(constraints)
    for one in listed:
        if (name := canonicalize_name(one["name"])) not in _TOOLS and name not in known:
            yield f"{name} {one['version']} is not in {constraints.name}"
    [packages] = folder.glob("lib/python*/site-packages")
    if not (packages / TYPED).is_file():
        yield f"{TYPED} is not installed: who imports it has no types"
    yield from _foreign(packages)


def _foreign(packages: Path) -> Iterator[str]:
    """Yield what the wheel puts beside `micronova` into site-packages."""
    [record] = packages.glob("micronova-*.dist-info/RECORD")
    for line in record.read_text(encoding="utf-8").splitlines():
        path = line.split(",", 1)[0]
        if not re.match(r"micronova/|micronova-[^/]+\.dist-info/|\.\./\.\./\.\./bin/", path):
            yield f"{path} is in site-packages"


def _run(*words: object) -> str:
    done = subprocess.run([str(one) for one in words], check=True, capture_output=True, text=True)
    return done.stdout
