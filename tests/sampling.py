"""What runs with every change, where everything would take hours.

A test with the mark ``sampled(n)`` runs in one of `n` of its cases. In the folders of ``TESTS``
one of `n` tests of each file runs, in those of ``FILES`` one of `n` files: their subjects have
tests in other tiers, too. It is the same part in every run, and one at least; the rest gets the
mark ``long``, so that ``tox -e chaos`` runs it.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

import pytest

MARK = "sampled"
REST = "long"

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
"""Files of which a part runs each time."""


@dataclass(frozen=True)
class Parts:
    """What part of which folder runs."""

    tests: Mapping[str, int] = field(default_factory=lambda: TESTS)
    files: Mapping[str, int] = field(default_factory=lambda: FILES)
    always: Set[str] = ALWAYS


def mark_the_rest(items: Sequence[pytest.Item], parts: Parts | None = None) -> None:
    """Give what isn't in a sample the mark ``long``."""
    parts = parts or Parts()
    for rule in (_cases, _tests, _files):
        groups: dict[tuple[str, int], dict[str, list[pytest.Item]]] = {}
        for item in items:
            found = None if item.get_closest_marker(REST) else rule(item, parts)
            if found is not None:
                whole, part, unit = found
                groups.setdefault((whole, part), defaultdict(list))[unit].append(item)
        for (_, part), units in groups.items():
            for unit in units.keys() - sample(list(units), part):
                for item in units[unit]:
                    item.add_marker(REST)


def sample(names: Sequence[str], part: int) -> frozenset[str]:
    """Return one of `part` names, and one at least: whichever have the smallest hashes."""
    by_hash = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
    return frozenset(by_hash[: max(1, len(names) // part)])


_Found = tuple[str, int, str] | None
"""What a rule says of a test: the name of the group whose sample it may be in, n, and the unit of
the sample (the test or its file). None: the rule doesn't concern it."""


def _cases(item: pytest.Item, _: Parts) -> _Found:
    mark = item.get_closest_marker(MARK)
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
