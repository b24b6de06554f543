"""setup.cfg says what the tree is: packages, data, requirements, doors."""

from __future__ import annotations

import ast
import configparser
import importlib.metadata
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.unit import sources
from tests.unit.sources import ROOT

SETUP = configparser.ConfigParser(interpolation=None)
SETUP.read(ROOT / "setup.cfg", encoding="utf-8")

PARTS = (
    "api",
    "cli",
    "common",
    "compute",
    "conductor",
    "console",
    "dashboard",
    "db",
    "identity",
    "launcher",
    "placement",
    "scheduler",
    "simulator",
    "web",
)


def lines(section: str, option: str) -> list[str]:
    return [line for line in SETUP[section][option].splitlines() if line.strip()]


def python_files() -> Iterator[Path]:
    for part in ("micronova", *PARTS):
        yield from sorted((ROOT / part).rglob("*.py"))


def test_every_package_is_listed() -> None:
    found = {"micronova"}
    for part in PARTS:
        for init in (ROOT / part).rglob("__init__.py"):
            found.add(".".join(("micronova", *init.parent.relative_to(ROOT).parts)))
    assert sorted(lines("options", "packages")) == sorted(found)


def test_every_module_is_in_a_package() -> None:
    stray = [
        str(path.relative_to(ROOT))
        for path in python_files()
        if not (path.parent / "__init__.py").exists()
    ]
    assert stray == []


#: modules of one folder: what a reader can still look over
MOST_MODULES = 28


def test_no_folder_has_more_modules_than_a_reader_looks_over() -> None:
    folders = Counter(str(path.parent.relative_to(ROOT)) for path in python_files())
    full = {name: number for name, number in folders.items() if number > MOST_MODULES}
    assert full == {}


def test_every_part_is_mapped_into_micronova() -> None:
    mapped = dict(line.split(" = ") for line in lines("options", "package_dir"))
    assert mapped == {"micronova": "micronova"} | {f"micronova.{p}": p for p in PARTS}


def test_every_part_says_what_it_owns() -> None:
    missing = [part for part in PARTS if not (ROOT / part / "README.md").is_file()]
    assert missing == []


def test_data_files_are_packaged() -> None:
    data = SETUP["options.package_data"]
    known = {"README.md", "py.typed"}
    stray = []
    for part in ("micronova", *PARTS):
        for path in (ROOT / part).rglob("*"):
            if path.is_dir() or path.suffix in {".py", ".pyc"} or path.name in known:
                continue
            home = next(one for one in path.parents if (one / "__init__.py").is_file())
            package = ".".join(("micronova", *home.relative_to(ROOT).parts))
            patterns = data.get(package.removeprefix("micronova.micronova") or package, "").split()
            if not any(path.match(pattern) for pattern in patterns):
                stray.append(str(path.relative_to(ROOT)))
    assert stray == []


def test_every_import_is_required_and_every_requirement_imported() -> None:
    owners = importlib.metadata.packages_distributions()
    # Several packages may have parts of one name, such as opentelemetry.
    imported: dict[frozenset[str], set[str]] = {}
    for path in python_files():
        for name in imports(path):
            if name in sys.stdlib_module_names or name in {"micronova", *PARTS}:
                continue
            of = frozenset(normal(owner) for owner in owners.get(name, [name]))
            imported.setdefault(of, set()).add(str(path.relative_to(ROOT)))
    required = {normal(line) for line in lines("options", "install_requires")}
    declared = required.union(
        *(
            {normal(line) for line in lines("options.extras_require", extra)}
            for extra in ("postgresql", "memcached", "tracing")
        )
    )
    undeclared = {of: files for of, files in imported.items() if not of & declared}
    assert undeclared == {}
    assert required - frozenset().union(*imported) == set()


def imports(path: Path) -> Iterator[str]:
    for node in sources.imports(path):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def normal(requirement: str) -> str:
    name = requirement
    for mark in "[<>=!~; ":
        name = name.split(mark)[0]
    return name.strip().lower().replace("_", "-").replace(".", "-")
