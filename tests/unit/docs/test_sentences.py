"""What pages say and no test runs is there: calls of APIs, options, tools of the tree."""

from __future__ import annotations

import configparser
import importlib.util
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from api.clustering import routes as clustering
from api.compute import routes as compute
from api.image import app as image
from api.network import app as network
from api.volume import routes as volume
from launcher import sample
from placement import routes as placement
from simulator.http import routes as simulator
from simulator.http.control import Control
from tests.pages import PAGES, ROOT, blocks, sentences
from web.protected import served_by

_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_CALL = re.compile(r"(GET|HEAD|POST|PUT|PATCH|DELETE) (\S+)")
_OPTION = re.compile(r"\[([\w:]+)\] (\w+)")
#: a parameter, and what stands for one
_PARAMETER = re.compile(r"\{\w+\}|<[^<>]+>")
_TOX = re.compile(r"\btox (?:run )?(?:-q )?-e ([\w,-]+)")
_MAKE = re.compile(r"(?:^|[\s`])make ([a-z][\w-]*)", re.MULTILINE)
_MODULE = re.compile(r"(?<![/\w])python3? -m ([a-z][\w.]*)")
#: who isn't asked
_NOBODY: Any = None
_FILE = re.compile(r"(?:[\w.-]+/)+\w+\.py\b")
#: where a name of the reader's stands in a path
_PATTERN = re.compile(r"\b[A-Z]{3,}\b")

OTHERS = {
    ("docs/notifications.md", "[DEFAULT] instance_usage_audit"): "Nova's name of ours",
    ("docs/notifications.md", "[DEFAULT] instance_usage_audit_period"): "Nova's name of ours",
    ("docs/placement.md", "[cors] allowed_origin"): "oslo.middleware's",
}
"""{(page, option): whose it is}"""

OTHER_FILES = {
    (
        "docs/decisions/0024-former-apis-and-the-driver-without-a-hypervisor.md",
        "api/compute_v2.py",
    ): "openstackclient's",
    ("docs/development/new-filter.md", "scheduler/filters/crowded.py"): "the reader's",
    ("docs/heat.md", "etc/heat/api.py"): "gunicorn's",
    ("docs/heat.md", "etc/heat/cfn.py"): "gunicorn's",
    ("docs/existing-dashboards.md", "etc/horizon/local/local_settings.py"): "Horizon's",
}
"""{(page, path): whose it is}"""


def codes(page: Path) -> Iterator[str]:
    for found in _CODE.finditer(sentences(page)):
        yield found[1]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


# --- calls


def shape(path: str) -> str:
    return _PARAMETER.sub("{}", path.partition("?")[0])


def answered() -> set[tuple[str, str]]:
    """Return what the APIs and the simulator answer: method, and path without the version."""
    found = [
        *compute.served(),
        *volume.served(),
        *clustering.served(),
        *image.served(),
        *network.served(),
        *served_by(placement.ROUTES.items()),
    ]
    calls = {(method, shape(path)) for method, path, _ in found}
    return (
        calls
        | {(one.method, shape(one.path)) for one in simulator.ROUTES}
        | set(Control(_NOBODY, _NOBODY).calls)
    )


@pytest.fixture(scope="module")
def known_calls() -> set[tuple[str, str]]:
    return answered()


def is_answered(call: tuple[str, str], known: set[tuple[str, str]]) -> bool:
    """Return whether there is such a call; `…` stands for a part that isn't printed."""
    method, path = call
    pattern = re.escape(shape(path)).replace("…", ".*")
    return any(method == one and re.fullmatch(pattern, two) for one, two in known)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_calls_are_answered(page: Path, known_calls: set[tuple[str, str]]) -> None:
    for text in codes(page):
        if found := _CALL.fullmatch(text):
            assert is_answered((found[1], found[2]), known_calls), text


@pytest.mark.parametrize(
    ("call", "is_one"),
    [
        (("GET", "/servers/<id>"), True),
        (("GET", "/queues?host=pve1"), True),
        (("POST", "…/import"), True),
        (("GET", "/nothing"), False),
        (("PUT", "/servers"), False),
    ],
)
def test_what_is_not_answered_is_found(
    known_calls: set[tuple[str, str]], call: tuple[str, str], is_one: bool
) -> None:
    assert is_answered(call, known_calls) is is_one


# --- options


@pytest.fixture(scope="module")
def known_options() -> Mapping[str, set[str]]:
    options = sample.options().items()
    return {group: {one.replace("-", "_") for one in named} for group, named in options}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_options_exist(page: Path, known_options: Mapping[str, set[str]]) -> None:
    for text in codes(page):
        if (found := _OPTION.match(text)) and (name(page), text) not in OTHERS:
            group = "proxmox:<cluster>" if found[1].startswith("proxmox:") else found[1]
            assert found[2] in known_options.get(group, ()), text


# --- tools of the tree


def everything(page: Path) -> str:
    return "\n".join([*codes(page), *(one.text for one in blocks(page))])


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_environments_of_tox_exist(page: Path) -> None:
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "tox.ini")
    for names in _TOX.findall(everything(page)):
        for one in names.split(",") if names != "NAME" else ():
            assert f"testenv:{one}" in settings or (ROOT / "tests" / one).is_dir(), one


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_targets_of_make_exist(page: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for text in [*codes(page), *(one.text for one in blocks(page) if not one.language)]:
        for target in _MAKE.findall(text):
            assert target in targets, text


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_modules_exist(page: Path) -> None:
    for module in _MODULE.findall(everything(page)):
        assert importlib.util.find_spec(module) is not None, module


# --- files of the tree


@pytest.fixture(scope="module")
def modules() -> frozenset[str]:
    """Paths in the tree, each with a slash before it."""
    rooms = {one.parent for one in ROOT.glob("*/__init__.py")} | {ROOT / "tests"}
    rooms |= {ROOT / "benchmarks"}
    found = [one for room in rooms for one in room.rglob("*.py")]
    return frozenset(f"/{one.relative_to(ROOT)}" for one in found)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_modules_that_are_named_by_their_path_exist(page: Path, modules: frozenset[str]) -> None:
    """A page may leave out the rooms that it speaks of, as in `move/resize.py`."""
    for path in _FILE.findall("\n".join(codes(page))):
        if (name(page), path) not in OTHER_FILES and not _PATTERN.search(path):
            assert any(one.endswith(f"/{path}") for one in modules), path
