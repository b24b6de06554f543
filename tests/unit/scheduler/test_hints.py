"""Hints that name other servers, or an address."""

from __future__ import annotations

from typing import Any

import pytest

from common.resources import hints
from scheduler.filters.hints import different_host, near_host_ip, same_host
from tests.unit.scheduler.decide.test_choose import a_host, a_request

WHERE = {"a": "pve1", "b": "pve2"}


def asking(**hinted: Any) -> Any:
    return a_request(hints=hinted, server_hosts=WHERE)


@pytest.mark.parametrize(
    ("wanted", "pve1", "pve3"),
    [
        ("a", None, "no server of the hint same_host is here, 1 of 1 elsewhere"),
        (["a", "b"], None, "no server of the hint same_host is here, 2 of 2 elsewhere"),
        (["a", "gone"], None, "no server of the hint same_host is here, 1 of 2 elsewhere"),
        ("gone", "is here, 0 of 1 elsewhere", "is here, 0 of 1 elsewhere"),
        ([], None, None),
    ],
)
def test_same_host(wanted: Any, pve1: str | None, pve3: str | None) -> None:
    for name, expected in (("pve1", pve1), ("pve3", pve3)):
        reason = same_host(a_host(name), asking(same_host=wanted))
        assert reason is None if expected is None else expected in str(reason)


def test_different_host() -> None:
    request = asking(different_host=["a", "b", "gone"])
    assert different_host(a_host("pve1"), request) == (
        "1 server of the hint different_host is here"
    )
    assert different_host(a_host("pve3"), request) is None
    assert different_host(a_host("pve1"), asking(different_host="gone")) is None


@pytest.mark.parametrize(
    ("hinted", "reason"),
    [
        ({}, None),
        ({"cidr": "/24"}, None),
        ({"build_near_host_ip": "10.99.0.200"}, None),
        ({"build_near_host_ip": "10.99.1.200"}, "its address is not in 10.99.1.0/24"),
        ({"build_near_host_ip": "10.99.1.200", "cidr": "/16"}, None),
        ({"build_near_host_ip": "10.99.0.7", "cidr": "/30"}, "its address is not in 10.99.0.4/30"),
        ({"build_near_host_ip": "fd00::1", "cidr": "/64"}, "its address is not in fd00::/64"),
    ],
)
def test_near_host_ip(hinted: dict[str, str], reason: str | None) -> None:
    assert near_host_ip(a_host(host_ip="10.99.0.1"), a_request(hints=hinted)) == reason


def test_near_host_ip_of_a_host_without_an_address() -> None:
    request = a_request(hints={"build_near_host_ip": "10.99.0.7"})
    assert near_host_ip(a_host(host_ip=""), request) == (
        "its address is not known, one in 10.99.0.0/24 asked"
    )


def test_near_what_is_no_network() -> None:
    asked = {"build_near_host_ip": "10.99.0.7", "cidr": "/99"}
    with pytest.raises(ValueError, match="99"):
        hints.near(asked)
    assert "name no network" in str(near_host_ip(a_host(), a_request(hints=asked)))


def test_nobody_hints_at_anything() -> None:
    for accept in (same_host, different_host, near_host_ip):
        assert accept(a_host(), a_request()) is None
        assert accept(a_host(), a_request(hints={"group": "g"})) is None


def test_the_servers_that_hints_name() -> None:
    named = {"same_host": "a", "different_host": ["b", "a"], "group": "g"}
    assert hints.all_servers(named) == ("a", "b")
    assert hints.all_servers({}) == ()


@pytest.mark.parametrize(
    ("asked", "cluster"),
    [({}, None), ({hints.CLUSTER: "sim1"}, "sim1"), ({hints.CLUSTER: ["sim1"]}, "sim1")],
)
def test_a_cluster_is_asked_for(asked: dict[str, object], cluster: str | None) -> None:
    assert hints.cluster(asked) == cluster


@pytest.mark.parametrize("value", ["", "x" * 256, {"a": "b"}])
def test_a_cluster_has_a_name(value: object) -> None:
    with pytest.raises(ValueError, match="micronova:cluster is the name of a cluster"):
        hints.cluster({hints.CLUSTER: value})
