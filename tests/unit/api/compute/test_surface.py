"""The surface holds together: routes, operations, policy, errors, the document."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.compute import document, errors, policies
from api.compute.links import Links
from api.compute.microversions import VERSIONS
from api.compute.routes import ROUTES
from api.query import Query
from common.errors import Invalid
from web.errors import STATUS
from web.guard import Operation, operation_of

ROOT = Path(__file__).parents[4]


def methods() -> Iterator[tuple[str, Any]]:
    for row in ROUTES:
        handlers = [one for method in row.methods for one in row.handlers(method)]
        for handler in [*handlers, *row.acting().values()]:
            yield f"{row.resource.__name__}.{handler.__name__}", handler


def operations() -> Iterator[tuple[str, Operation]]:
    return ((name, operation_of(method)) for name, method in methods())


def test_every_operation_can_be_reached_and_is_described() -> None:
    reached = dict(methods())
    for row in ROUTES:
        for name, method in inspect.getmembers(row.resource, inspect.isfunction):
            if hasattr(method, "operation"):
                assert f"{row.resource.__name__}.{name}" in reached
    assert all(method.__doc__ for method in reached.values())


def test_every_rule_is_declared_once_and_used() -> None:
    names = [rule.name for rule in policies.RULES]
    assert len(names) == len(set(names))
    used = {described.rule for _, described in operations() if described.rule}
    assert used <= set(names)


def test_versions_are_in_order() -> None:
    for name, described in operations():
        assert described.since <= (described.until or VERSIONS.newest) <= VERSIONS.newest, name


def test_every_status_has_a_name() -> None:
    assert set(STATUS.values()) - set(errors.FAULT_NAMES) == {406, 412, 416, 500}


def test_the_document_is_current() -> None:
    assert (ROOT / "docs" / "api.md").read_text() == document.document()


def test_links() -> None:
    links = Links("http://h/compute/")
    assert [link["href"] for link in links.item("flavors", "a/b c")] == [
        "http://h/compute/v2.1/flavors/a%2Fb%20c",
        "http://h/compute/flavors/a%2Fb%20c",
    ]
    query = Query.parse("status=A&name=x%26y&marker=old&status=B")
    assert links.after("servers", query, "m&") == [
        {
            "rel": "next",
            "href": "http://h/compute/v2.1/servers?name=x%26y&status=A&status=B&marker=m%26",
        }
    ]


def test_queries() -> None:
    query = Query.parse("a=1&a=2&b=&t=2026-01-31T12:00:00&yes=On&n=5")
    assert query.last("a") == "2"
    assert query.last("b") == ""
    assert query.last("c") is None
    assert query.boolean("yes") is True
    assert query.number("n") == 5
    moment = query.moment("t")
    assert moment is not None
    assert moment.isoformat() == "2026-01-31T12:00:00+00:00"
    assert query.page(10) == (10, None)
    for name, read in (("a", query.moment), ("b", query.boolean), ("yes", query.number)):
        with pytest.raises(Invalid):
            read(name)
