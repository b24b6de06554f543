"""The sentence of operators: in plain words, once, with numbers and hosts."""

from __future__ import annotations

from typing import Any

import pytest

from common import config
from scheduler import config as scheduler_config
from scheduler.decide.choose import choose
from scheduler.explain.outcome import Outcomes
from scheduler.explain.words import sentence
from scheduler.filters.resources import Shortage
from scheduler.hosts.columns import HostColumns
from scheduler.service import load_filters
from tests.unit.scheduler.decide.test_choose import a_host, a_request

CONF = config.load([scheduler_config.register])
FILTERS = load_filters(CONF)


def reason_of(*hosts: Any, **asked: Any) -> str:
    columns, request = HostColumns.of(hosts), a_request(**asked)
    choice = choose(columns, request, FILTERS, {}, keep=0)
    return str(Outcomes(CONF, FILTERS).nowhere(request, choice, columns).reason)


def test_too_much_of_one_thing() -> None:
    hosts = [a_host(f"pve{number}", free_mib=1000 + number) for number in range(1, 7)]
    assert reason_of(*hosts, memory_mib=999_999_999) == (
        "None of 6 hosts has room: 999999999 MiB RAM asked, 1006 MiB free at most (pve6). "
        "It would fit with 1006 MiB or less."
    )
    assert reason_of(hosts[0], memory_mib=2048) == (
        "The only host has no room: 2048 MiB RAM asked, 1001 MiB free at most (pve1). "
        "It would fit with 1001 MiB or less."
    )


def test_too_much_of_several_things() -> None:
    hosts = [a_host("a", free_mib=1000, vcpus=2), a_host("b", free_mib=2000, vcpus=4)]
    assert reason_of(*hosts, memory_mib=3000, vcpus=5) == (
        "None of 2 hosts has room: 5 VCPU asked, 4 VCPU for one server at most (b); "
        "3000 MiB RAM asked, 2000 MiB free at most (b). "
        "It would fit with 4 VCPU and 2000 MiB RAM or less."
    )


def test_enough_of_each_but_not_together() -> None:
    hosts = [a_host("a", free_mib=1000), a_host("b", vcpus=2)]
    assert reason_of(*hosts, memory_mib=2000, vcpus=3) == (
        "None of 2 hosts has room for all of it (b: one server may have 2 VCPU at most, "
        "3 asked). It would fit with 2 VCPU or less."
    )


def test_hosts_that_are_refused_for_several_reasons() -> None:
    hosts = [
        a_host("a", free_mib=1000),
        a_host("b", free_mib=1500),
        a_host("c", healthy=False, health="offline"),
    ]
    assert reason_of(*hosts, memory_mib=2000) == (
        "None of 3 hosts will do: 2 with no room (2000 MiB RAM asked, 1500 MiB free at most (b)); "
        "1 with a node that is not healthy. It would fit with 1500 MiB or less."
    )
    assert reason_of(*hosts[2:]) == (
        "The only host won't do: a node that is not healthy (c: offline)."
    )


def test_filters_from_outside_are_named() -> None:
    refused = {"mine": {"a": "x" * 1000}, "resources": {"b": "1 free"}}
    text = sentence(2, refused, None, [Shortage("MiB RAM", 2, 1, "b", whole=False)])
    assert text == (
        "None of 2 hosts will do: 1 with a refusal by mine; "
        "1 with no room (2 MiB RAM asked, 1 MiB free at most (b))."
    )
    assert len(sentence(1, {"mine": {"a": "x" * 1000}})) < 400


@pytest.mark.parametrize("considered", [0])
def test_no_host_at_all(considered: int) -> None:
    assert sentence(considered, {}) == "There is no compute host."


def test_a_flavor_that_asks_for_nothing_is_refused_as_such() -> None:
    specs = {f"resources:{name}": "0" for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
    assert "the flavor asks for nothing" in reason_of(a_host(), a_host("b"), extra_specs=specs)
