"""Which commands of python-openstackclient and osc-placement are offered, by name.

Names come from the entry points of the installed packages; no command is imported for them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, distribution

#: distribution → group of entry points → which names (a pattern), so that services and resources
#: that don't exist here are left out; all of Keystone does
OFFERED: Mapping[str, Mapping[str, str]] = {
    "python-openstackclient": {
        "openstack.common": r".+",
        "openstack.compute.v2": (
            r"(?!compute agent |server share )"
            r"(?!server (add|remove) (share|floating ip)).+"
        ),
        "openstack.identity.v3": r".+",
        "openstack.image.v2": r"image (?!metadef |stores |task ).+",
        "openstack.network.v2": (
            r"(network|port|subnet|network rbac|security group|security group rule) \w+"
        ),
        "openstack.volume.v3": (
            r"block storage resource filter .+"
            r"|volume (?!attachment (complete|create|set)|service set)"
            r"(?!backup record |group |host |migrate|qos ).+"
        ),
    },
    "osc-placement": {"openstack.placement.v1": r".+"},
}


@cache
def entry_points() -> Mapping[str, EntryPoint]:
    """Return the commands offered: name → entry point, not loaded."""
    return {
        name: point
        for package, groups in OFFERED.items()
        for point in _entry_points(package)
        if point.group in groups
        if re.fullmatch(groups[point.group], name := point.name.replace("_", " "))
    }


def by_noun(names: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield, for the names with the same first word, their common prefix and the rest of each.

    >>> list(by_noun(["role add", "role assignment list", "quota show", "compute service list"]))
    [('compute service', ['list']), ('quota', ['show']), ('role', ['add', 'assignment list'])]
    """
    for _, group in itertools.groupby(sorted(map(str.split, names)), key=lambda words: words[0]):
        same = list(group)
        columns = zip(*(words[:-1] for words in same), strict=False)
        noun = [words[0] for words in itertools.takewhile(lambda c: len(set(c)) == 1, columns)]
        yield " ".join(noun), [" ".join(words[len(noun) :]) for words in same]


def _entry_points(package: str) -> Collection[EntryPoint]:
    try:
        found: Distribution = distribution(package)
    except PackageNotFoundError:
        return ()  # osc-placement is optional
    return found.entry_points
