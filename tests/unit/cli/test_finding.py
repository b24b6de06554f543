"""A name that fits nothing, or several things."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from openstack import exceptions

from tests.fixtures.sdk import FakeConnection, FakeProxy, run

NOTHING = exceptions.NotFoundException("No Flavor found for m1.smal")


def named(*names: str) -> list[SimpleNamespace]:
    return [SimpleNamespace(id=f"id-{name}", name=name) for name in names]


def test_a_flavor_that_is_not_there_is_repeated_with_those_that_are() -> None:
    compute = FakeProxy(
        create_server=None, find_flavor=NOTHING, flavors=named("m1.tiny", "m1.small")
    )
    words = ("server", "create", "--flavor", "m1.smal", "--image", "i", "web")
    ran = run(FakeConnection(compute), *words)
    assert ran.code == 1
    assert ran.err == (
        "No flavor named 'm1.smal'. Did you mean 'm1.small'? There are: m1.tiny, m1.small\n"
    )


def test_an_image_that_is_not_there_is_repeated_with_those_that_are() -> None:
    compute = FakeProxy(find_flavor=named("f")[0], create_server=None)
    image = FakeProxy(find_image=NOTHING, images=named("debian-12", "cirros"))
    words = ("server", "create", "--flavor", "f", "--image", "windows", "--nic", "none", "web")
    ran = run(FakeConnection(compute, image), *words)
    assert ran.code == 1
    assert ran.err == "No image named 'windows'. There are: debian-12, cirros\n"


def test_where_there_is_none_that_is_repeated() -> None:
    network = FakeProxy(find_network=NOTHING, networks=[])
    words = ("server", "create", "--flavor", "f", "--image", "i", "--network", "lan", "web")
    ran = run(FakeConnection(FakeProxy(create_server=None), network=network), *words)
    assert ran.err == "No network named 'lan': there is none at all.\n"


def test_a_long_list_is_cut() -> None:
    compute = FakeProxy(
        create_server=None, find_flavor=NOTHING, flavors=named(*(f"f{n}" for n in range(30)))
    )
    words = ("server", "create", "--flavor", "large", "--image", "i", "web")
    ran = run(FakeConnection(compute), *words)
    assert ran.err.endswith("f18, f19 and 10 more\n")


@pytest.mark.parametrize(
    "words",
    [
        ("server", "show", "web.1"),
        ("server", "stop", "web.1"),
        ("server", "delete", "web.1"),
        ("server", "event", "list", "web.1"),
        ("explain", "web.1"),
    ],
)
def test_several_servers_of_a_name_are_listed_by_id(words: tuple[str, ...]) -> None:
    def servers(**query: Any) -> Iterator[SimpleNamespace]:
        assert query["name"] == r"^web\.1$"
        for number, name in enumerate(("web.1", "web.1", "web.1b")):
            yield SimpleNamespace(id=f"id-{number}", name=name, status="ACTIVE")

    twice = exceptions.DuplicateResource("More than one Server exists with the name 'web.1'.")
    compute = FakeProxy(find_server=twice, servers=servers, stop_server=None)
    ran = run(FakeConnection(compute), *words)
    assert ran.code == 1
    assert (
        "More than one server is named 'web.1', take an ID: id-0 (ACTIVE), id-1 (ACTIVE)"
        in ran.err
    )


def test_no_list_of_servers_is_shown() -> None:
    compute = FakeProxy(find_server=exceptions.NotFoundException("No Server found for x"))
    ran = run(FakeConnection(compute), "server", "show", "x")
    assert ran.err == "No server named 'x'.\n"
