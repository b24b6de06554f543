"""Filters and weighers are found in their rooms, documented, and the defaults are among them."""

from __future__ import annotations

from typing import Any

import pytest

from common import config as configuration
from common.errors import ConfigurationError
from common.process.child import ROOT
from scheduler import config, filters, service, weighers


def test_a_filter_follows_the_one_that_it_names() -> None:
    order = list(filters.found())
    marks = {name: one.__dict__["host_filter"] for name, one in filters.found().items()}
    assert marks[order[0]].after is None
    for name in order[1:]:
        assert order.index(marks[name].after) < order.index(name)


def test_each_has_words_of_its_own() -> None:
    assert len(set(filters.words().values())) == len(filters.found())


def test_each_is_documented_with_its_multiplier() -> None:
    text = (ROOT / "docs" / "scheduler.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    documented = {row[0].strip("| `"): row[1] for row in rows}
    assert set(documented) == {*filters.found(), *weighers.found()}
    assert [name for name in documented if name in filters.found()] == list(filters.found())
    defaults = next(option for option in config.OPTIONS if option.name == "weighers").default
    assert {name: documented[name] for name in weighers.found()} == {
        name: defaults.get(name, "–") for name in weighers.found()
    }
    assert set(defaults) <= weighers.found().keys()


def options(**values: Any) -> Any:
    conf = configuration.load([config.register])
    for name, value in values.items():
        conf.set_override(name, value, group="scheduler")
    return conf


def test_without_a_list_all_are_used_in_their_order() -> None:
    assert service.load_filters(options()) == filters.found()
    assert list(service.load_filters(options(filters=["traits", "resources"]))) == [
        "traits",
        "resources",
    ]


@pytest.mark.parametrize(
    ("load", "values", "kind"),
    [
        (service.load_filters, {"filters": ["luck"]}, "filter"),
        (service.load_weighers, {"weighers": {"luck": "1.0"}}, "weigher"),
    ],
)
def test_an_unknown_name_says_so(load: Any, values: Any, kind: str) -> None:
    with pytest.raises(ConfigurationError, match=f"There is no {kind} luck"):
        load(options(**values))
