"""Enumerations of which a fixed part is enough for every change, and the rest for a release.

A test with the mark ``sampled(n)`` runs in one of `n` of its cases, the same ones in every run and
at least one; the others get the mark ``long``, so that ``tox -e chaos`` runs them too. With
``of="file"`` the cases of a file are counted together, whichever tests they are of.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence

import pytest

MARK = "sampled"


def mark_the_rest(items: Iterable[pytest.Item]) -> None:
    """Give what isn't in the sample the mark ``long``."""
    cases: dict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker(MARK)
        if mark is not None and item.get_closest_marker("long") is None:
            end = "::" if mark.kwargs.get("of") == "file" else "["
            cases[item.nodeid.partition(end)[0], mark.args[0]].append(item)
    for (_, part), of_one in cases.items():
        kept = sample([one.nodeid for one in of_one], part)
        for item in of_one:
            if item.nodeid not in kept:
                item.add_marker(pytest.mark.long)


def sample(names: Sequence[str], part: int) -> frozenset[str]:
    """Return one of `part` names, and one at least: whichever have the smallest hashes."""
    by_hash = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
    return frozenset(by_hash[: max(1, len(names) // part)])
