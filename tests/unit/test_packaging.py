"""setup.cfg says what the tree is: packages, data, requirements, doors."""

from __future__ import annotations

import ast
import configparser
import importlib.metadata
import io
import re
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from launcher import files
from launcher.quickstart import configuration
from release import archives, constraints
from tests.fixtures.units import CONFINEMENT
from tests.unit import sources
from tests.unit.sources import ROOT

ETC = ROOT / "etc"

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
    found = {"micronova", "micronova.etc"}
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
    parts = (*PARTS, "etc")
    assert mapped == {"micronova": "micronova"} | {f"micronova.{part}": part for part in parts}


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


def test_what_a_machine_needs_is_packaged() -> None:
    patterns = SETUP["options.package_data"]["micronova.etc"].split()
    files = [
        path.relative_to(ETC)
        for path in ETC.rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    ]
    # Modules of a package's own folder are packaged as such.
    modules = {path for path in files if path.parent == Path() and path.suffix == ".py"}
    stray = [
        path
        for path in files
        if not any(path.match(pattern) for pattern in patterns) and path not in modules
    ]
    assert stray == []
    assert {Path("gunicorn.conf.py"), Path("systemd/micronova.target")} <= set(files)


def test_every_requirement_has_a_lower_bound() -> None:
    assert [str(one) for one in constraints.requirements() if not has_lower_bound(one)] == []


def has_lower_bound(requirement: Requirement) -> bool:
    return any(one.operator == ">=" for one in requirement.specifier)


def test_the_constraints_name_all_that_is_needed() -> None:
    pinned = constraints.pinned()
    wanted = constraints.needed([*constraints.requirements(), Requirement(constraints.BUILDER)])
    assert wanted.keys() - pinned.keys() == set(), "run tox -e genconstraints"


def test_the_constraints_are_what_the_requirements_allow() -> None:
    pinned = constraints.pinned()
    wrong = [
        f"{one} but {pinned[name]}"
        for one in constraints.requirements()
        if pinned[name := canonicalize_name(one.name)] not in one.specifier
    ]
    assert wrong == []


UNITS = sorted((ETC / "systemd").glob("*.service"))


def settings(unit: Path) -> list[tuple[str, str]]:
    section = unit.read_text(encoding="utf-8").partition("[Service]\n")[2].partition("\n[")[0]
    pairs = [line.partition("=") for line in section.splitlines() if line and line[0] != "#"]
    return [(name, value) for name, _, value in pairs]


def test_all_units_are_confined_alike() -> None:
    found = {
        tuple((name, value) for name, value in settings(unit) if name in CONFINEMENT)
        for unit in UNITS
    }
    [common] = found
    assert {name for name, _ in common} == CONFINEMENT


def test_all_units_are_of_the_target() -> None:
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8")
        assert "\nPartOf=micronova.target\n" in text, unit
        assert "\nWantedBy=multi-user.target micronova.target\n" in text, unit


EXPOSURE = 3.0


def test_a_service_has_time_to_start_beside_all_others() -> None:
    """systemd gives 90 s, after which it stops and starts it again, without an end."""
    for unit in UNITS:
        lines = unit.read_text(encoding="utf-8").splitlines()
        assert ("Type=notify" in lines) == ("TimeoutStartSec=300" in lines), unit.name


def test_apis_may_write_their_audit_log() -> None:
    """Of /var/lib they may write to their unit's folders only."""
    unit = ETC / "systemd" / "micronova-api@.service"
    writable = {f"/var/lib/{value}" for name, value in settings(unit) if name == "StateDirectory"}
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    [printed] = re.findall(r"^\[audit_log\]\nfile = (.+)$", page, re.MULTILINE)
    ours = Path("/var/lib/micronova") / configuration.AUDIT_LOG
    assert {str(Path(printed).parent), str(ours.parent)} <= writable


ANALYZE = shutil.which("systemd-analyze")


@pytest.mark.skipif(ANALYZE is None, reason="there is no systemd")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_finds_little_exposed(unit: Path) -> None:
    words = [str(ANALYZE), "security", "--offline=true", "--no-pager", str(unit)]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", said.stdout)
    assert found is not None, said
    assert float(found[1]) <= EXPOSURE


@pytest.mark.skipif(ANALYZE is None, reason="there is no systemd")
def test_systemd_understands_all_units(tmp_path: Path) -> None:
    written = files.write(tmp_path)
    units = [str(tmp_path / path) for path in written if path.parent.name == "systemd"]
    words = [str(ANALYZE), "verify", "--man=no", "--recursive-errors=one", *units]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stderr) == (0, "")


def test_files_name_the_programs_of_this_installation(tmp_path: Path) -> None:
    written = files.write(tmp_path / "new" / "folder")
    assert {path.name for path in UNITS} <= {path.name for path in written}
    unit = tmp_path / "new" / "folder" / "systemd" / "micronova-conductor.service"
    programs = str(Path(sys.executable).parent)
    assert f"\nExecStart={programs}/micronova service conductor" in unit.read_text()
    assert all((tmp_path / "new" / "folder" / path).is_file() for path in written)


def test_files_replace_nothing_unasked(tmp_path: Path) -> None:
    files.write(tmp_path)
    mine = tmp_path / "gunicorn.conf.py"
    mine.write_text("workers = 9\n")
    lost = tmp_path / "systemd" / "micronova.target"
    lost.unlink()
    with pytest.raises(files.OthersAreThere, match=r"gunicorn\.conf\.py$"):
        files.write(tmp_path)
    assert mine.read_text() == "workers = 9\n"
    assert not lost.exists()
    files.write(tmp_path, replace=True)
    assert mine.read_text() == (ETC / "gunicorn.conf.py").read_text()
    assert lost.exists()


CONTAINERS = ROOT / "containers"


def test_an_image_is_of_a_base_with_a_plain_name_and_not_roots() -> None:
    text = (CONTAINERS / "Containerfile").read_text(encoding="utf-8")
    assert set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) == {"${BASE}"}
    assert re.findall(r"^ARG BASE=(\S+)$", text, re.MULTILINE) == ["debian:trixie-slim"]
    [user] = re.findall(r"^USER (\d+):\d+$", text, re.MULTILINE)
    assert int(user) > 0
    assert "\nHEALTHCHECK " in text


@pytest.mark.parametrize(
    "file", sorted(CONTAINERS.glob("compose*.yaml")), ids=lambda one: one.name
)
def test_composed_services_are_confined_and_watched(file: Path) -> None:
    read = yaml.safe_load(file.read_text(encoding="utf-8"))
    ours = [one for one in read["services"].values() if "MICRONOVA_IMAGE" in one["image"]]
    assert ours
    for one in ours:
        assert (one["read_only"], one["cap_drop"]) == (True, ["ALL"])
        assert "no-new-privileges" in one["security_opt"]
        # what ends by itself is waited for, not watched
        if one["healthcheck"] != {"disable": True}:
            assert one["healthcheck"]["test"][0] == "CMD"
        assert all(port.startswith("127.0.0.1:") for port in one.get("ports", ()))


def archive(names: Sequence[str], moment: int) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as packed:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uid, member.uname = len(name), moment, 1000, "me"
            member.mode = 0o664
            packed.addfile(member, io.BytesIO(name.encode()))
    return made.getvalue()


def test_an_archive_does_not_depend_on_who_made_it() -> None:
    one = archives.normal(archive(["a-1/b", "a-1/c"], 5), 77)
    assert one == archives.normal(archive(["a-1/c", "a-1/b"], 99), 77)
    with tarfile.open(fileobj=io.BytesIO(one)) as packed:
        assert {(m.uid, m.uname, m.mtime, m.mode) for m in packed} == {(0, "root", 77, 0o644)}
        assert [packed.extractfile(m).read() for m in packed] == [b"a-1/b", b"a-1/c"]  # type: ignore[union-attr]


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


def test_it_is_typed_for_those_who_import_it() -> None:
    assert "py.typed" in SETUP["options.package_data"]["micronova"].split()
    assert (ROOT / "micronova/py.typed").is_file()


def test_the_debian_package_asks_nothing() -> None:
    files = [path for path in (ROOT / "debian").rglob("*") if path.is_file()]
    assert [path.name for path in files if path.suffix in (".templates", ".config")] == []
    texts = {path.name: path.read_text(encoding="utf-8") for path in files}
    assert "control" in texts
    assert [name for name, text in texts.items() if "debconf" in text or "db_input" in text] == []
