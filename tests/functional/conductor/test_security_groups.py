"""Security groups under races, on SQLite and where the database lets all in: PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from common import ids
from common.context import RequestContext
from common.errors import Conflict, NotFound
from common.resources.security_rules import Rule
from conductor.endpoints.networks.ports import PortEndpoint
from conductor.endpoints.networks.security_groups import SecurityGroupEndpoint
from conductor.rpc.networks.ports import NewPort
from conductor.rpc.networks.security_groups import NewRule, NewSecurityGroup
from db import schema
from tests.functional.conductor.harness import World
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401

VMBR0 = ids.named("network", "vmbr0")
MEMBER = RequestContext(user_id="u", project_id="p", roles=["member"])


@pytest.fixture(params=["sqlite", "postgresql"])
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    made = World(tmp_path, url=url)
    yield made
    made.close()
    for pool in (made.conductor.store._writer, made.conductor.store._reader):
        pool.dispose()


@pytest.fixture
def groups(world: World) -> SecurityGroupEndpoint:
    return SecurityGroupEndpoint(world.conductor.cloud, lambda: None)


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Call all at once; return what each returned, or the refusal it raised."""

    def one(work: Callable[[], Any]) -> Any:
        try:
            return work()
        except (Conflict, NotFound) as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(one, calls))


def test_all_who_look_first_find_one_default_group(
    world: World, groups: SecurityGroupEndpoint
) -> None:
    ports = PortEndpoint(world.conductor.cloud, world.conductor.runner)
    found = at_once(
        *[lambda: groups.ensure_default_security_group(MEMBER, "p")] * 4,
        *[lambda: ports.create_ports(MEMBER, [NewPort("p", VMBR0)])] * 4,
    )
    (group,) = world.rows(schema.security_groups)
    assert found[:4] == [group.id] * 4
    assert len(world.rows(schema.security_group_rules)) == 4
    bound = world.rows(schema.port_security_groups)
    assert [one.security_group_id for one in bound] == [group.id] * 4


def test_no_quota_is_overstepped_and_no_rule_is_there_twice(
    world: World, groups: SecurityGroupEndpoint
) -> None:
    limits = world.conductor.cloud.conf
    limits.set_override("security_groups", 4, group="quota")
    new = NewSecurityGroup("p", "web")
    made = at_once(*[lambda: groups.create_security_groups(MEMBER, [new])] * 8)
    assert len([one for one in made if isinstance(one, list)]) == 3
    assert len(world.rows(schema.security_groups)) == 4
    group_id = next(one[0] for one in made if isinstance(one, list))

    def add(*protocols: str) -> list[str]:
        rules = [NewRule(group_id, Rule("ingress", protocol=one)) for one in protocols]
        return groups.create_security_group_rules(MEMBER, "p", rules)

    same = at_once(*[lambda: add("tcp")] * 6)
    assert len([one for one in same if isinstance(one, list)]) == 1
    used = len(world.rows(schema.security_group_rules))
    limits.set_override("security_group_rules", used + 2, group="quota")
    names = ("udp", "icmp", "gre", "esp", "ah", "vrrp")
    at_once(*[lambda name=name: add(name) for name in names])  # type: ignore[misc]
    assert len(world.rows(schema.security_group_rules)) == used + 2


def test_no_port_is_left_in_a_group_that_is_gone(
    world: World, groups: SecurityGroupEndpoint
) -> None:
    ports = PortEndpoint(world.conductor.cloud, world.conductor.runner)
    for _ in range(4):
        (group_id,) = groups.create_security_groups(MEMBER, [NewSecurityGroup("p", "web")])
        (other,) = groups.create_security_groups(MEMBER, [NewSecurityGroup("p", "db")])
        named = NewRule(other, Rule("ingress", remote_group_id=group_id))
        at_once(
            lambda: ports.create_ports(
                MEMBER,
                [NewPort("p", VMBR0, security_groups=(group_id,))],  # noqa: B023
            ),
            lambda: groups.delete_security_group(MEMBER, group_id),  # noqa: B023
            lambda: groups.create_security_group_rules(MEMBER, "p", [named]),  # noqa: B023
        )
    there = {row.id for row in world.rows(schema.security_groups)}
    assert {row.security_group_id for row in world.rows(schema.port_security_groups)} <= there
    rules = world.rows(schema.security_group_rules)
    assert {row.security_group_id for row in rules} <= there
    assert {row.remote_group_id for row in rules} - {None} <= there
