"""Which servers' firewalls are written, with what, and that no change is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from common import clock, failures, ids
from common.context import RequestContext
from common.errors import Invalid
from common.messages.commands import Build
from common.messages.facts import NicFacts
from common.messages.filters import FilterCheck
from common.messages.inventory import ClusterInventory, SeenVm
from common.resources.security_rules import Rule
from conductor.audit.differences import differences
from conductor.audit.gather import Gatherer
from conductor.endpoints.networks.address_groups import AddressGroupEndpoint
from conductor.endpoints.networks.ports import PortEndpoint
from conductor.endpoints.networks.security_groups import SecurityGroupEndpoint
from conductor.rpc.networks.address_groups import NewAddressGroup
from conductor.rpc.networks.ports import AddressPair, NewPort, PortChange
from conductor.rpc.networks.security_groups import NewRule, NewSecurityGroup
from conductor.rpc.servers.servers import RequestedNetwork
from conductor.store.networks import networks
from conductor.store.networks.filtering import filters
from conductor.store.networks.networks import RequestedPort, ServerPorts
from conductor.store.outbox import filter_outbox
from db import schema
from tests.fixtures.listings import a_port, a_server, counted
from tests.functional.conductor.harness import BOOKS, World

VMBR0 = ids.named("network", "vmbr0")
MANY = 200


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.conductor.cloud.conf.set_override("firewall", "on", group="networks")
    subnet = networks.parse_subnet("vmbr0=10.0.0.0/16")
    made.conductor.store.run(lambda c: networks.ensure_subnet(c, subnet))
    yield made
    made.close()


@pytest.fixture
def ports(world: World) -> PortEndpoint:
    return PortEndpoint(world.conductor.cloud, world.conductor.runner)


@pytest.fixture
def groups(world: World) -> SecurityGroupEndpoint:
    return SecurityGroupEndpoint(world.conductor.cloud, lambda: None)


def make_group(world: World, groups: SecurityGroupEndpoint, *rules: Rule) -> str:
    (group_id,) = groups.create_security_groups(world.ctxt, [NewSecurityGroup("p", "x")])
    new = [NewRule(group_id, one) for one in rules]
    if new:
        groups.create_security_group_rules(world.ctxt, "p", new)
    return group_id


def servers_in(world: World, group_id: str, numbers: range, *, filtered: bool = True) -> list[str]:
    """Servers that run, each with a port in the group."""
    rows = []
    for number in numbers:
        where = {"host": "pve1", "cluster": "sim1", "node": "pve1", "vmid": 100_000 + number}
        port = {"subnet_id": None, "ip": f"10.1.0.{number}", "mac": f"fa:16:3e:00:01:{number:02x}"}
        port["ip6"] = f"fd00::{number}"
        rows.append(a_server(number, "p", **where))
        rows.append(a_port(number, "p", port_security=filtered or None, **port))
        bound = {"port_id": rows[-1][1]["id"], "security_group_id": group_id}
        rows.append((schema.port_security_groups, bound))

    def insert(connection: sa.Connection) -> None:
        for table, values in rows:
            connection.execute(table.insert().values(**values))

    world.conductor.store.run(insert)
    world.leaves = books(world)
    return [ids.named("server", str(number)) for number in numbers]


def books(world: World) -> set[str]:
    """Return the kinds of what the audit finds: these rows have no allocations."""
    found = differences(Gatherer(world.conductor.cloud).look())
    return {one.kind for one in found} & BOOKS


def written(world: World) -> list[str]:
    """Return the servers whose firewalls are written for what has changed."""
    world.compute.filtered.clear()
    world.conductor.filters.carry_out()
    return sorted(server for server, _ in world.compute.filtered)


def test_only_those_that_must_change_are_written(
    world: World, ports: PortEndpoint, groups: SecurityGroupEndpoint
) -> None:
    crowd = make_group(world, groups)
    naming = make_group(world, groups, Rule("ingress", "IPv4", remote_group_id=crowd))
    members = servers_in(world, crowd, range(1, MANY + 1))
    watching = servers_in(world, naming, range(201, 204))
    servers_in(world, naming, range(204, 206), filtered=False)
    assert written(world) == []
    # Another member: those alone whose group names it.
    new = NewPort("p", VMBR0, security_groups=(crowd,))
    (port_id,) = ports.create_ports(world.ctxt, [new])
    assert written(world) == sorted(watching)
    (address,) = [row.ip for row in world.rows(schema.ports) if row.id == port_id]
    for _, wanted in world.compute.filtered:
        (port,) = wanted.ports
        assert (port.on, len(port.addresses), len(port.rules)) == (True, 2, 3)
        assert len(wanted.groups[crowd]) == 2 * MANY + 1
        assert address in wanted.groups[crowd]
    assert written(world) == []
    # Many changes, one write.
    for name in ("a", "b"):
        ports.update_port(world.ctxt, port_id, PortChange(name=name))
    assert written(world) == []
    pair = PortChange(address_pairs=(AddressPair("10.8.0.0/24"),))
    ports.update_port(world.ctxt, port_id, pair)
    ports.delete_port(world.ctxt, port_id)
    assert written(world) == sorted(watching)
    # A rule: those in the group.
    (rule,) = groups.create_security_group_rules(
        world.ctxt, "p", [NewRule(crowd, Rule("ingress", "IPv4", "tcp", 22, 22))]
    )
    assert written(world) == sorted(members)
    groups.delete_security_group_rule(world.ctxt, rule)
    assert len(written(world)) == MANY
    # A port of a server: that one, and those whose group names a group of it.
    mine = next(row for row in world.rows(schema.ports) if row.server_uuid == members[0])
    ports.update_port(world.ctxt, mine.id, PortChange(security_groups=()))
    assert written(world) == sorted([members[0], *watching])
    off = PortChange(port_security=False)
    ports.update_port(world.ctxt, mine.id, off)
    assert written(world) == [members[0]]
    ((_, wanted),) = world.compute.filtered
    assert [port.on for port in wanted.ports] == [False]


def test_ports_that_go_with_their_servers_cost_few_statements(
    world: World, groups: SecurityGroupEndpoint
) -> None:
    store = world.conductor.store
    crowd = make_group(world, groups)
    naming = make_group(world, groups, Rule("ingress", "IPv4", remote_group_id=crowd))
    members = servers_in(world, crowd, range(1, 12), filtered=False)
    servers_in(world, naming, range(12, 14), filtered=False)

    def cost(*uuids: str) -> int:
        with counted(store._writer) as of_none:
            store.run(lambda c: None)
        with counted(store._writer) as statements:
            store.run(lambda c: networks.delete_ports(c, *uuids))
        return statements() - of_none()

    assert cost("of no port") == 1
    # What there is, their places in groups, and themselves.
    assert cost(members[0]) == cost(*members[1:10]) == 3
    assert written(world) == []
    watching = servers_in(world, naming, range(14, 16))
    assert cost(members[10]) == 3 + 3
    assert written(world) == sorted(watching)
    gone = {*members}
    assert not [row for row in world.rows(schema.ports) if row.server_uuid in gone]


def test_new_ports_ask_nothing_more_where_nothing_is_filtered(
    world: World, groups: SecurityGroupEndpoint
) -> None:
    store = world.conductor.store
    crowd = make_group(world, groups)
    naming = make_group(world, groups, Rule("ingress", "IPv4", remote_group_id=crowd))
    servers_in(world, naming, range(1, 3), filtered=False)
    new = ServerPorts(ids.new_uuid(), "p", [RequestedPort(VMBR0)], groups=(crowd,))

    def cost(*, filtered: bool) -> int:
        with counted(store._writer) as statements:
            store.run(lambda c: networks.create_ports(c, [new], "fa:16:3e", filtered=filtered))
        return statements()

    least = cost(filtered=False)
    assert cost(filtered=True) == least + 1
    assert written(world) == []
    watching = servers_in(world, naming, range(3, 5))
    assert cost(filtered=False) == least + 3
    assert written(world) == sorted(watching)
    store.run(lambda c: networks.delete_ports(c, new.server_uuid))
    world.leaves = books(world)


def test_no_change_is_lost(
    world: World, ports: PortEndpoint, groups: SecurityGroupEndpoint
) -> None:
    group_id = make_group(world, groups)
    (server,) = servers_in(world, group_id, range(1, 2))

    def add(name: str) -> None:
        new = NewRule(group_id, Rule("ingress", "IPv4", name))
        groups.create_security_group_rules(world.ctxt, "p", [new])

    world.compute.deaf = True
    add("tcp")
    assert written(world) == []
    (entry,) = world.rows(schema.filter_changes)
    assert entry.not_before > clock.utcnow()
    world.compute.deaf = False
    # The next change makes it due; a further one during the write is written too.
    add("udp")

    def add_during_write() -> None:
        world.compute.writing = None
        add("gre")
        assert len(world.rows(schema.filter_changes)) == 1

    world.compute.writing = add_during_write
    assert written(world) == [server]
    assert len(world.rows(schema.filter_changes)) == 1
    assert written(world) == [server]
    assert world.rows(schema.filter_changes) == []
    ((_, wanted),) = world.compute.filtered
    names = {one.rule.protocol for one in wanted.ports[0].rules}
    assert names >= {"tcp", "udp", "gre"}
    # Of a server that is gone nothing is left.
    add("esp")
    gone = schema.servers.update().values(deleted_at=clock.utcnow(), host=None)
    world.conductor.store.run(lambda c: c.execute(gone))
    assert written(world) == []
    assert world.rows(schema.filter_changes) == []
    world.leaves = books(world)


def test_what_can_t_be_written_is_tried_less_and_less_often(
    world: World, groups: SecurityGroupEndpoint
) -> None:
    """Such as the firewall of a VM that somebody removed; until its server is deleted."""
    group_id = make_group(world, groups)
    (server,) = servers_in(world, group_id, range(1, 2))

    def add(name: str) -> None:
        new = NewRule(group_id, Rule("ingress", "IPv4", name))
        groups.create_security_group_rules(world.ctxt, "p", [new])

    def fail() -> filter_outbox.Pending:
        """Try it now, in vain; return the entry as it was, and see that it waits."""
        at_once = schema.filter_changes.update().values(not_before=clock.utcnow())
        world.conductor.store.run(lambda c: c.execute(at_once))
        (entry,) = due(world)
        before = clock.utcnow()
        assert written(world) == []
        (row,) = world.rows(schema.filter_changes)
        least = failures.backoff_seconds(entry.failures + 1) * (1 - failures.JITTER)
        assert (row.not_before - before).total_seconds() >= least
        return entry

    add("tcp")
    world.compute.deaf = True
    assert [fail().failures for _ in range(6)] == [0, 1, 2, 3, 4, 5]
    # Another change is written at once, and what waits when an agent has started again.
    add("udp")
    assert fail().failures == 0
    assert due(world) == []
    world.beat(published=True)
    assert [one.server_uuid for one in due(world)] == [server]
    # A server that is deleted after the entry was read is nothing to try again.
    fail()
    world.beat(published=True)

    def die() -> None:
        gone = schema.servers.update().values(deleted_at=clock.utcnow(), host=None)
        world.conductor.store.run(lambda c: c.execute(gone))

    (entry,) = due(world)
    die()
    world.conductor.filters._converge(entry)
    assert world.rows(schema.filter_changes) == []
    world.leaves = books(world)


def due(world: World) -> list[filter_outbox.Pending]:
    with world.conductor.store.read() as connection:
        return filter_outbox.pending(connection, 9)


def test_a_build_carries_what_is_to_pass(world: World) -> None:
    world.conductor.runner.start()
    world.create(networks=(RequestedNetwork(VMBR0),))
    command = world.compute.wait_for(1)
    assert isinstance(command, Build)
    assert command.filter is not None
    (port,) = command.filter.ports
    assert (port.on, port.mac) == (True, command.nics[0].mac)
    assert command.nics[0].filtered
    assert port.addresses == (command.nics[0].ip,)
    assert len(port.rules) == 4
    assert list(command.filter.groups.values()) == [port.addresses]


def test_an_audit_has_firewalls_written_that_others_changed(
    world: World, groups: SecurityGroupEndpoint
) -> None:
    crowd = make_group(world, groups)
    naming = make_group(world, groups, Rule("ingress", "IPv4", remote_group_id=crowd))
    members = servers_in(world, crowd, range(1, 4))
    (watching,) = servers_in(world, naming, range(4, 5))
    servers_in(world, crowd, range(5, 6), filtered=False)
    reserve(world)
    world.compute.seen["sim1"] = ClusterInventory("sim1", tuple(map(as_read, world.rows(SERVERS))))
    changed = ("rule in ACCEPT is missing",)
    world.compute.firewalls = {
        members[0]: FilterCheck(changed, ("rule in DROP",)),
        watching: FilterCheck(changed),
    }
    asked: list[str] = []
    reader = world.conductor.store._reader
    sa.event.listen(reader, "before_cursor_execute", lambda *args: asked.append(args[2]))
    world.conductor.auditor.audit()
    # Two looks, of all that are filtered, and one at what was healed.
    assert len(world.compute.checked) == 3 * 4
    assert sorted(one for one, _ in world.compute.filtered) == sorted([members[0], watching])
    wanted = dict(world.compute.checked)[watching]
    assert len(wanted.groups[crowd]) == 2 * 4
    kinds = {row.kind: row for row in world.rows(schema.findings) if "firewall" in row.kind}
    assert kinds["firewall_differs"].healed_at is not None
    assert kinds["firewall_foreign"].healed_at is None
    assert len([one for one in asked if "JOIN security_group_rules" in one]) == 3 + 2
    # What is about to be written is no difference, and where nothing is filtered nobody looks.
    world.compute.deaf = True
    new = NewRule(crowd, Rule("ingress", "IPv4", "tcp"))
    groups.create_security_group_rules(world.ctxt, "p", [new])
    assert set(members) <= Gatherer(world.conductor.cloud).look().firewalls_due
    world.conductor.cloud.conf.set_override("firewall", "off", group="networks")
    assert Gatherer(world.conductor.cloud).look().firewalls is None
    world.compute.deaf = False
    world.leaves = books(world)


SERVERS = schema.servers


def as_read(row: sa.Row[tuple[object, ...]]) -> SeenVm:
    """The VM of a server, whose configuration was read."""
    number = row.vmid - 100_000
    nics = (NicFacts(f"fa:16:3e:00:01:{number:02x}", "vmbr0"),)
    marks = {"read": True, "server_uuid": row.uuid, "proven": True, "nics": nics}
    return SeenVm(row.vmid, row.node, vcpus=1, memory_mib=512, **marks)


def reserve(world: World) -> None:
    """The VMIDs of all servers: only reserved ones are read."""
    now = clock.utcnow()
    rows = [
        {
            **{"cluster": row.cluster, "vmid": row.vmid, "server_uuid": row.uuid},
            **{"state": "reserved", "since": now},
        }
        for row in world.rows(SERVERS)
    ]
    world.conductor.store.run(lambda c: c.execute(schema.vmids.insert(), rows))
    world.leaves = books(world)


def clusters_say(world: World, unfiltered: str) -> None:
    """Have the only cluster report whether it can filter, and be asked again."""
    cloud = world.conductor.cloud
    cloud.conf.set_override("firewall", "auto", group="networks")

    def work(connection: sa.Connection) -> None:
        (facts,) = connection.execute(sa.select(schema.clusters.c.facts)).scalars()
        values = {"facts": {**facts, "unfiltered": unfiltered}}
        connection.execute(schema.clusters.update().values(**values))

    world.conductor.store.run(work)
    cloud.__dict__.pop("filtering", None)


@pytest.mark.parametrize("why", ["", "the datacenter's firewall is off"])
def test_by_default_servers_are_filtered_where_their_clusters_can(world: World, why: str) -> None:
    clusters_say(world, why)
    world.conductor.runner.start()
    world.create(networks=(RequestedNetwork(VMBR0),))
    build = world.compute.wait_for(1)
    assert isinstance(build, Build)
    (nic,) = build.nics
    assert nic.filtered is not bool(why)
    assert (build.filter is None) is bool(why)


def test_a_port_can_be_filtered_where_clusters_can_alone(
    world: World, ports: PortEndpoint
) -> None:
    clusters_say(world, "the datacenter's firewall is off")
    (port_id,) = ports.create_ports(world.ctxt, [NewPort("p", VMBR0)])
    before = world.rows(schema.ports)
    for act in (
        lambda: ports.create_ports(world.ctxt, [NewPort("p", VMBR0, port_security=True)]),
        lambda: ports.update_port(world.ctxt, port_id, PortChange(port_security=True)),
    ):
        with pytest.raises(Invalid) as refused:
            act()
        assert refused.value.message == (
            "Invalid input for port_security_enabled. Reason: no port can be filtered here: "
            "[networks] firewall is auto, and in cluster sim1 the datacenter's firewall is off."
        )
    assert world.rows(schema.ports) == before
    assert before[0].port_security is None
    clusters_say(world, "")
    ports.update_port(world.ctxt, port_id, PortChange(port_security=True))
    (row,) = world.rows(schema.ports)
    assert row.port_security is True
    # Whatever the clusters say later, it is as it was made.
    clusters_say(world, "the datacenter's firewall is off")
    ports.update_port(world.ctxt, port_id, PortChange(name="x"))
    (row,) = world.rows(schema.ports)
    assert row.port_security is True


def test_addresses_that_others_assign_are_not_known(
    world: World, ports: PortEndpoint, groups: SecurityGroupEndpoint
) -> None:
    (server,) = servers_in(world, make_group(world, groups), range(1, 2))
    clusters_say(world, "")
    other = world.conductor.store.run(lambda c: networks.ensure_network(c, "vmbr1"))
    new = [
        NewPort("p", other),
        NewPort("p", other, address_pairs=(AddressPair("10.9.0.0/16"),)),
        NewPort("p", VMBR0, fixed_ips=()),
        NewPort("p", VMBR0),
    ]
    made = ports.create_ports(world.ctxt, new)

    def give(connection: sa.Connection) -> None:
        for position, port_id in enumerate(made):
            mine = schema.ports.c.id == port_id
            values = {"server_uuid": server, "position": position + 1}
            connection.execute(schema.ports.update().where(mine).values(**values))

    world.conductor.store.run(give)
    with world.conductor.store.read() as connection:
        wanted = filters.wanted(connection, server)
    addresses = [port.addresses for port in wanted.ports][1:]
    # A port that was to have no address where there are some may use none.
    assert addresses[:3] == [None, ("10.9.0.0/16",), ()]
    assert addresses[3] is not None
    assert len(addresses[3]) == 1


def test_a_change_of_an_address_group_is_written(
    world: World, groups: SecurityGroupEndpoint
) -> None:
    prefixes = AddressGroupEndpoint(world.conductor.cloud, lambda: None)
    (named,) = prefixes.create_address_groups(
        world.ctxt, [NewAddressGroup("p", addresses=("10.7.0.0/16",))]
    )
    naming = make_group(world, groups, Rule("ingress", "IPv4", remote_address_group_id=named))
    watching = servers_in(world, naming, range(1, 3))
    servers_in(world, make_group(world, groups), range(3, 4))
    assert written(world) == []
    prefixes.change_addresses(world.ctxt, named, add=["10.8.0.0/16", "fd00:1::/64"], remove=[])
    assert written(world) == sorted(watching)
    for _, wanted in world.compute.filtered:
        assert wanted.groups[named] == ("10.7.0.0/16", "10.8.0.0/16", "fd00:1::/64")
    prefixes.update_address_group(world.ctxt, named, {"name": "x"})
    assert written(world) == []
    prefixes.change_addresses(world.ctxt, named, add=[], remove=["10.7.0.0/16"])
    assert written(world) == sorted(watching)


def test_another_mac_address_is_an_administrator_s(
    world: World, ports: PortEndpoint, groups: SecurityGroupEndpoint
) -> None:
    pair = AddressPair("10.9.0.1", "00:00:5e:00:01:07")
    with pytest.raises(Invalid, match="only administrators allow"):
        ports.create_ports(world.ctxt, [NewPort("p", VMBR0, address_pairs=(pair,))])
    admin = RequestContext(user_id="a", project_id="p", is_admin=True, roles=["admin"])
    (port_id,) = ports.create_ports(admin, [NewPort("p", VMBR0, address_pairs=(pair,))])
    with pytest.raises(Invalid, match="only administrators allow"):
        ports.update_port(world.ctxt, port_id, PortChange(address_pairs=(pair,)))
    (server,) = servers_in(world, make_group(world, groups), range(1, 2))
    mine = schema.ports.c.id == port_id
    values = {"server_uuid": server, "position": 1}
    world.conductor.store.run(
        lambda c: c.execute(schema.ports.update().where(mine).values(**values))
    )
    with world.conductor.store.read() as connection:
        wanted = filters.wanted(connection, server)
    assert [port.any_mac for port in wanted.ports] == [False, True]
    assert "10.9.0.1" in (wanted.ports[1].addresses or ())
