from __future__ import annotations

import re
from collections import Counter

from api.compute import policies
from api.compute.extension_names import EXTENSIONS, LEGACY, OWN
from api.compute.routes import ROUTES


def test_each_rule_of_ours_belongs_to_one_extension() -> None:
    rules = [rule.name.split(":") for rule in policies.RULES]
    wanted = {parts[1] for parts in rules if parts[0] == "micronova"}
    nouns = Counter(noun for _, _, nouns in OWN.values() for noun in nouns)
    assert nouns == Counter(wanted)


def test_the_paths_that_our_extensions_name_are_served() -> None:
    served = {row.path for row in ROUTES}
    named = [path for _, text, _ in OWN.values() for path in re.findall(r"/[a-z{}_/-]+", text)]
    assert len(named) >= len(OWN)
    assert set(named) <= served


def test_no_alias_is_one_of_nova_s() -> None:
    assert list(OWN) == sorted(OWN)
    assert not OWN.keys() & {*EXTENSIONS, *LEGACY}
