"""What runs: all that fits, or for a person what a change touches and a sample of the rest.

``--part all``, which is the default and what ``.ci/run`` does, leaves out the mark ``long``, and
of the enumerations in ``tests/chaos``, which take hours, all but a sample. ``--part touched``, or
``make test``, runs the tests of the modules that differ from the last commit but one (of many
modules: a sample of their files), and a sample of all others: one of `n` tests of each file in
the folders of ``TESTS``, one of `n` files in those of ``FILES``. Samples rotate with the commit.

A test with the mark ``sampled(n)`` is an enumeration, such as a death at each commit: in
``tests/chaos``, and in ``make test``, one of `n` of its cases runs. ``tox -e chaos`` runs all.
"""

from __future__ import annotations

import functools
import hashlib
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import pytest

from common.process.child import ROOT

MARK = "sampled"
REST = "long"
ALL, TOUCHED = "all", "touched"
ENUMERATIONS = "tests/chaos"

TESTS: Mapping[str, int] = {
    "tests/browser": 2,
    "tests/chaos": 3,
    "tests/compat": 2,
    "tests/functional": 3,
    "tests/functional/api_compute": 3,
    "tests/functional/api_image": 2,
    "tests/functional/api_network": 3,
    "tests/functional/api_volume": 3,
    "tests/functional/audit": 3,
    "tests/functional/cli": 3,
    "tests/functional/compute": 5,
    "tests/functional/conductor": 5,
    "tests/functional/conductor/takeover": 5,
    "tests/functional/console": 3,
    "tests/functional/dashboard": 3,
    "tests/functional/db": 2,
    "tests/functional/follow": 2,
    "tests/functional/identity": 3,
    "tests/functional/placement": 3,
    "tests/functional/scheduler": 2,
}
"""{folder: n}"""

FILES: Mapping[str, int] = {
    "tests/chaos": 4,
    "tests/compat": 6,
    "tests/functional": 2,
    "tests/functional/cli": 2,
    "tests/functional/compute": 2,
    "tests/functional/conductor": 2,
    "tests/functional/conductor/takeover": 2,
    "tests/functional/placement": 2,
    "tests/functional/scheduler": 2,
}
"""{folder: n}"""

ALWAYS = frozenset(
    {
        "tests/chaos/test_every_step.py",
        "tests/compat/test_openstack_cli.py",
        "tests/functional/cli/test_up.py",
        "tests/functional/conductor/test_volume_races.py",
        "tests/functional/test_distributed.py",
        "tests/functional/test_printed_deployment.py",
    }
)
"""Files that are in every run, with a part of their tests."""

MOST_TOUCHED = 20
"""How many files a person waits for whole. A move of modules touches a third of the tree."""


@dataclass(frozen=True)
class Parts:
    """How large a part of each folder runs."""

    tests: Mapping[str, int] = field(default_factory=lambda: TESTS)
    files: Mapping[str, int] = field(default_factory=lambda: FILES)
    always: Set[str] = ALWAYS
    seed: str = ""
    """What the sample depends on."""
    touched: Set[str] = frozenset()
    """Files that run whole."""


def parts_of(part: str) -> Parts:
    """Return what an option of the command line means, for the commit that is checked out."""
    if part == ALL:
        return Parts({}, {}, seed=commit())
    return Parts(seed=commit(), touched=few(touched_by(_changed()), commit()))


def few(files: Set[str], seed: str) -> frozenset[str]:
    """Return the files that run whole: `MOST_TOUCHED` of them after a change to many modules."""
    return frozenset(_by_hash(files, seed)[:MOST_TOUCHED])


@functools.cache
def commit() -> str:
    """Return the commit that is checked out, by which samples rotate."""
    return _git("rev-parse", "HEAD")


def mark_the_rest(items: Sequence[pytest.Item], parts: Parts) -> None:
    """Give what isn't in a sample the mark ``long``."""
    for rule in (_cases, _tests, _files):
        groups: dict[tuple[str, int], dict[str, list[pytest.Item]]] = {}
        for item in items:
            found = None if item.get_closest_marker(REST) else rule(item, parts)
            if found is not None and not _runs_whole(item, parts):
                whole, part, unit = found
                groups.setdefault((whole, part), defaultdict(list))[unit].append(item)
        for (_, part), units in groups.items():
            for unit in units.keys() - sample(list(units), part, parts.seed):
                for item in units[unit]:
                    item.add_marker(REST)


def _runs_whole(item: pytest.Item, parts: Parts) -> bool:
    """Return whether its file was touched. Enumerations of ``tests/chaos`` would take an hour."""
    file = _file(item)
    dear = _folder(file) == ENUMERATIONS and item.get_closest_marker(MARK) is not None
    return file in parts.touched and not dear


def sample(names: Sequence[str], part: int, seed: str = "") -> frozenset[str]:
    """Return one of `part` names, and one at least: whichever have the smallest hashes."""
    return frozenset(_by_hash(names, seed)[: max(1, len(names) // part)])


def _by_hash(names: Iterable[str], seed: str) -> list[str]:
    return sorted(names, key=lambda name: hashlib.sha256(f"{seed}{name}".encode()).digest())


def touched_by(changed: Sequence[str]) -> frozenset[str]:
    """Return the test files of changed modules: themselves, and those named like them.

    The tree is mirrored: of the folders named like a module's, the files that share a word with
    the module or its folder.
    """
    found = {name for name in changed if name.startswith("tests/")}
    modules = [name for name in changed if name.endswith(".py") and name not in found]
    for path in ROOT.glob("tests/*/**/test_*.py"):
        file = path.relative_to(ROOT)
        if any(_concerns(file.parts, module.split("/")) for module in modules):
            found.add(str(file))
    return frozenset(found)


def _concerns(test: Sequence[str], module: Sequence[str]) -> bool:
    folders = {f"api_{module[1]}"} if module[0] == "api" else {module[0]}
    words = {_word(one) for one in re.split(r"[/_]", "/".join(module[1:]).removesuffix(".py"))}
    named = {_word(one) for one in test[-1].removeprefix("test_").removesuffix(".py").split("_")}
    return bool(folders & set(test[2:-1]) and words & named)


def _word(word: str) -> str:
    return word.removesuffix("s")


@functools.cache
def _changed() -> tuple[str, ...]:
    """Return the files that differ from the commit before the last one."""
    return tuple(_git("diff", "--name-only", "HEAD~1", "--").split())


def _git(*arguments: str) -> str:
    """Return what git prints; nothing where there is no repository, as in an archive."""
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


_Found = tuple[str, int, str] | None
"""What a rule says of a test: the name of the group whose sample it may be in, n, and the unit of
the sample (the test or its file). None: the rule doesn't concern it."""


def _cases(item: pytest.Item, parts: Parts) -> _Found:
    mark = item.get_closest_marker(MARK)
    if not parts.tests and _folder(_file(item)) != ENUMERATIONS:
        return None
    return (item.nodeid.partition("[")[0], mark.args[0], item.nodeid) if mark else None


def _tests(item: pytest.Item, parts: Parts) -> _Found:
    file = _file(item)
    part = parts.tests.get(_folder(file))
    return (file, part, item.nodeid) if part else None


def _files(item: pytest.Item, parts: Parts) -> _Found:
    file = _file(item)
    part = parts.files.get(_folder(file))
    return (_folder(file), part, file) if part and file not in parts.always else None


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _folder(file: str) -> str:
    return file.rpartition("/")[0]
