"""What VMs have that the record doesn't know is given to nobody, as after a restored backup."""

from __future__ import annotations

import contextlib
import datetime
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from common import clock, ids
from common.errors import Conflict, Invalid, Unavailable
from common.messages.facts import (
    LAST,
    ClusterFacts,
    Heartbeat,
    NicFacts,
    OtherVm,
    VmFacts,
    VmStates,
    VnetFacts,
)
from conductor.endpoints.networks.ports import PortEndpoint
from conductor.endpoints.servers.interfaces import InterfaceEndpoint
from conductor.engine import awaited
from conductor.engine.periodic import Periodic
from conductor.engine.settling import Settling
from conductor.rpc.networks.ports import FixedIp, NewPort, PortChange
from conductor.rpc.servers.interfaces import Attachment
from conductor.rpc.servers.servers import RequestedNetwork
from conductor.store.hosts import registry
from conductor.store.networks import networks, pools, unknown_vms, user_ports, vnets
from conductor.store.networks.pools import Macs, Unsettled, Within
from conductor.store.servers import vmids
from conductor.sync.other_vms import OtherVms
from db import schema
from tests.functional.conductor.harness import World
from tests.functional.waiting import eventually

SUBNETS = (
    "vmbr0=10.0.0.0/24;pool=10.0.0.50-10.0.0.53",
    "vmbr0=fd00::/64;pool=fd00::50-fd00::53",
)
MAC, OTHERS_MAC = "fa:16:3e:00:00:01", "fa:16:3e:00:00:02"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    for text in SUBNETS:
        parsed = networks.parse_subnet(text)
        made.conductor.store.run(lambda c, parsed=parsed: networks.ensure_subnet(c, parsed))
    made.conductor.runner.start()
    yield made
    made.close()


def network_id(world: World, bridge: str = "vmbr0") -> str:
    return str(next(row.id for row in world.rows(schema.networks) if row.bridge == bridge))


def nic(*ips: str, bridge: str = "vmbr0", vlan: int | None = None, mac: str = MAC) -> NicFacts:
    return NicFacts(mac, bridge, vlan, ips)


def seen(
    world: World, *vms: VmFacts, all_of_them: bool = True, gone: tuple[int, ...] = ()
) -> None:
    """What an agent reports, and reads when it is asked."""
    bounds: dict[str, Any] = {"low": 0, "high": LAST} if all_of_them else {}
    now = clock.utcnow()
    states = VmStates("w1", "sim1", now, ("pve1",), True, vms, gone, **bounds)
    world.conductor.followed.take(states)
    eventually(lambda: all(row.read_at for row in world.rows(schema.other_vms)))


def there(world: World, vmid: int, *nics: NicFacts, kind: str = "VM") -> VmFacts:
    world.compute.others[vmid] = OtherVm(vmid, "pve1", kind, nics)
    return VmFacts(vmid, "pve1", 1, kind=kind)


def port(world: World, **asked: Any) -> Any:
    endpoint = PortEndpoint(world.conductor.cloud, world.conductor.runner)
    new = NewPort("p", asked.pop("network", None) or network_id(world), **asked)
    [made] = endpoint.create_ports(world.ctxt, [new])
    return next(row for row in world.rows(schema.ports) if row.id == made)


@pytest.mark.parametrize("vmid", [100_777, 555], ids=["in our band", "elsewhere"])
@pytest.mark.parametrize("kind", ["VM", "container"])
def test_addresses_of_others_are_passed_over(world: World, vmid: int, kind: str) -> None:
    taken = nic("10.0.0.50", "10.0.0.52", "fd00::50")
    seen(world, there(world, vmid, taken, kind=kind))
    first, second = port(world), port(world)
    assert [(one.ip, one.ip6) for one in (first, second)] == [
        ("10.0.0.51", "fd00::51"),
        ("10.0.0.53", "fd00::52"),
    ]
    with pytest.raises(Conflict, match="No more IP addresses available"):
        port(world)
    # It is gone: what it had is free.
    seen(world, gone=(vmid,), all_of_them=False)
    assert port(world).ip == "10.0.0.50"
    assert world.rows(schema.other_nics) == world.rows(schema.other_vms) == []


def test_a_build_passes_them_over(world: World) -> None:
    seen(world, there(world, 555, nic("10.0.0.50")))
    world.create(networks=(RequestedNetwork(network_id(world)),))
    command = world.compute.wait_for(1)
    assert [one.ip for one in command.nics] == ["10.0.0.51"]  # type: ignore[attr-defined]


def test_one_that_is_asked_for_is_refused(world: World) -> None:
    seen(world, there(world, 555, nic("10.0.0.51", "fd00::51")))
    for address in ("10.0.0.51", "fd00::51", "fd00:0::51"):
        with pytest.raises(Conflict, match="already allocated in subnet") as refused:
            port(world, fixed_ips=(FixedIp(None, address),))
        assert refused.value.details["type"] == "IpAddressAlreadyAllocated"
    with pytest.raises(Conflict, match=f"The mac address {MAC} is in use") as refused:
        port(world, mac=MAC)
    assert refused.value.details["type"] == "MacAddressInUse"
    mine = port(world)
    endpoint = PortEndpoint(world.conductor.cloud, world.conductor.runner)
    with pytest.raises(Conflict, match="is in use"):
        endpoint.update_port(world.ctxt, mine.id, PortChange(mac=MAC))
    change = PortChange(fixed_ips=(FixedIp(None, "10.0.0.51"),))
    with pytest.raises(Conflict, match="already allocated"):
        endpoint.update_port(world.ctxt, mine.id, change)
    with pytest.raises(Invalid, match=r"Fixed IP 10\.0\.0\.51 is already in use"):
        world.create(networks=(RequestedNetwork(network_id(world), "10.0.0.51"),))
    assert world.rows(schema.servers) == []


def test_one_that_is_asked_for_an_attachment_is_refused(world: World) -> None:
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    server = world.until(uuid, "active")
    seen(world, VmFacts(server.vmid, "pve1", 1), there(world, 555, nic("10.0.0.51")))
    plugs = InterfaceEndpoint(world.conductor.cloud, world.conductor.runner)
    wanted = Attachment(network_id(world), None, "10.0.0.51")
    with pytest.raises(Conflict, match="already in use"):
        plugs.attach_interface(world.ctxt, uuid, wanted, wait=False)


@pytest.mark.parametrize(
    "elsewhere",
    [nic("10.0.0.50", bridge="vmbr1"), nic("10.0.0.50", vlan=7), nic("10.9.0.50")],
    ids=["another bridge", "another tag", "another subnet"],
)
def test_an_address_elsewhere_is_nobodys_here(world: World, elsewhere: NicFacts) -> None:
    seen(world, there(world, 555, elsewhere))
    assert port(world).ip == "10.0.0.50"


def test_macs_of_others_are_passed_over(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    seen(world, there(world, 555, nic()))
    numbers = iter([1, 1, 2, 1, 3])
    monkeypatch.setattr(pools.secrets, "token_bytes", lambda size: next(numbers).to_bytes(size))
    assert port(world).mac == "fa:16:3e:00:00:02"
    # A network without subnets has its MAC addresses, too.
    assert port(world, network=network_id(world, "vmbr1")).mac == "fa:16:3e:00:00:03"


def test_what_is_the_records_is_no_others(world: World) -> None:
    (uuid,) = world.create()
    server = world.row(uuid)
    world.compute.wait_for(1)
    server = world.row(uuid)
    seen(world, there(world, server.vmid, nic("10.0.0.50")))
    assert world.rows(schema.other_vms) == []
    assert world.compute.asked_for == []
    # A VM that is given up remains, with its addresses.
    world.conductor.store.run(lambda c: vmids.quarantine(c, "sim1", server.vmid, "left"))
    seen(world, there(world, server.vmid, nic("10.0.0.50")))
    assert [row.vmid for row in world.rows(schema.other_vms)] == [server.vmid]
    world.conductor.store.run(lambda c: vmids.hold(c, "sim1", server.vmid, uuid, 1))
    seen(world, there(world, server.vmid, nic("10.0.0.50")))
    assert world.rows(schema.other_vms) == world.rows(schema.other_nics) == []


def test_each_is_read_once_and_again_when_it_changes(world: World) -> None:
    vms = [there(world, number, nic(mac=f"fa:16:3e:00:01:{number:02x}")) for number in range(20)]
    for _ in range(3):
        seen(world, *vms)
    assert world.compute.asked_for == [list(range(20))]
    world.compute.others[3] = OtherVm(3, "pve1", nics=(nic("10.0.0.50"),))
    seen(world, vms[3], all_of_them=False)
    assert world.compute.asked_for[1:] == [[3]]
    assert port(world).ip == "10.0.0.51"
    # A VM that moved is another node's.
    seen(world, *vms[:3], VmFacts(3, "pve2", 1), *vms[4:])
    assert world.compute.asked_for[2:] == [[3]]


def test_what_one_has_is_remembered_while_it_can_t_be_read(world: World) -> None:
    """Its node is away: its addresses are still its own, and it is read again soon."""
    vm = there(world, 555, nic("10.0.0.50"))
    seen(world, vm)
    world.compute.others[555] = OtherVm(555, "pve1", unread=True)
    seen(world, vm, all_of_them=False)
    eventually(lambda: len(world.compute.asked_for) == 2)
    assert port(world).ip == "10.0.0.51"
    [row] = world.rows(schema.other_vms)
    assert row.read_at < clock.after(-unknown_vms.AGAIN_SECONDS / 2)
    with world.conductor.store.read() as connection:
        assert unknown_vms.due(connection, ["sim1"], 9) == {}


def test_a_build_waits_until_the_vms_of_its_cluster_were_looked_at(world: World) -> None:
    """A restored record knows that they were, but before this conductor began."""
    store = world.conductor.store
    seen(world, there(world, 555, nic("10.0.0.50")))
    before = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    store.run(lambda c: c.execute(schema.clusters.update().values(looked_at=before)))
    world.create(networks=(RequestedNetwork(network_id(world)),))
    world.until_operation("queued")
    assert world.rows(schema.ports) == []
    world.compute.others[556] = OtherVm(556, "pve1", nics=(nic("10.0.0.51"),))
    seen(world, VmFacts(555, "pve1", 1), VmFacts(556, "pve1", 1))
    world.make_due()
    command = world.compute.wait_for(1)
    assert [one.ip for one in command.nics] == ["10.0.0.52"]  # type: ignore[attr-defined]


def test_a_build_waits_also_where_the_record_is_compared_later(world: World) -> None:
    """Another server of the database may have taken over, without what was committed last."""
    seen(world, there(world, 555, nic("10.0.0.50")))
    row = {"id": 1, "cloud_id": ids.new_uuid(), "compare_since": clock.utcnow()}
    world.conductor.store.run(lambda c: c.execute(schema.cloud_identity.insert(), row))
    world.create(networks=(RequestedNetwork(network_id(world)),))
    world.until_operation("queued")
    with world.conductor.store.read() as connection:
        assert unknown_vms.stale(connection, world.conductor.cloud.since) == ["sim1"]
    world.compute.others[556] = OtherVm(556, "pve1", nics=(nic("10.0.0.51"),))
    seen(world, VmFacts(555, "pve1", 1), VmFacts(556, "pve1", 1))
    world.make_due()
    command = world.compute.wait_for(1)
    assert [one.ip for one in command.nics] == ["10.0.0.52"]  # type: ignore[attr-defined]


def compare(world: World, operation: int = 1) -> None:
    """Another server of the database has taken over: the record may have lost something."""
    row = {"id": 1, "cloud_id": ids.new_uuid(), "compare_operation": operation}
    began = {"compare_since": clock.utcnow(), **row}
    world.conductor.store.run(lambda c: c.execute(schema.cloud_identity.insert(), began))
    world.conductor.cloud.guard.was_held()


def is_compared(world: World) -> bool:
    with world.conductor.store.read() as connection:
        return not unknown_vms.open_clusters(connection, world.conductor.cloud.since)


def shown(*vms: VmFacts, operations: tuple[int, ...] = (), asked: bool = True) -> VmStates:
    """What an agent sees, with what it carries out."""
    return VmStates(
        *("w1", "sim1", clock.utcnow(), ("pve1",), True, vms),
        low=0,
        high=LAST,
        asked=asked,
        operations=operations,
    )


def test_what_was_seen_before_it_was_asked_for_is_no_comparison(world: World) -> None:
    """A report may have waited in its queue since before the record lost something."""
    seen(world, there(world, 555, nic("10.0.0.50")))
    compare(world)
    world.conductor.followed.take(shown(VmFacts(555, "pve1", 1), asked=False))
    assert not is_compared(world)
    world.compute.others[556] = OtherVm(556, "pve1", nics=(nic("10.0.0.51"),))
    world.compute.shown["sim1"] = shown(VmFacts(555, "pve1", 1), VmFacts(556, "pve1", 1))
    eventually(lambda: is_compared(world))
    assert port(world).ip == "10.0.0.52"


def test_it_is_no_comparison_while_what_the_record_lost_is_carried_out(world: World) -> None:
    """A build may have to make its VM yet, or give it its interfaces."""
    seen(world, there(world, 555, nic("10.0.0.50")))
    compare(world)
    made = VmFacts(555, "pve1", 1), VmFacts(556, "pve1", 1)
    world.compute.others[556] = OtherVm(556, "pve1")
    world.compute.shown["sim1"] = shown(*made, operations=(99,))
    eventually(lambda: [556] in world.compute.asked_for)
    eventually(lambda: all(row.read_at for row in world.rows(schema.other_vms)))
    assert not is_compared(world)
    world.compute.others[556] = OtherVm(556, "pve1", nics=(nic("10.0.0.51"),))
    world.compute.shown["sim1"] = shown(*made)
    eventually(lambda: is_compared(world))
    assert port(world).ip == "10.0.0.52"


def test_a_cluster_that_was_never_compared_may_have_servers_all_the_same(world: World) -> None:
    """The replica that took over may have lost that it was."""
    compare(world)
    assert not is_compared(world)
    world.compute.others[556] = OtherVm(556, "pve1", nics=(nic("10.0.0.50"),))
    world.compute.shown["sim1"] = shown(VmFacts(556, "pve1", 1))
    eventually(lambda: is_compared(world))
    assert port(world).ip == "10.0.0.51"


def unsettle(world: World) -> None:
    """As after a restored record, whose conductor has just begun: a VM took the next address."""
    seen(world, there(world, 555, nic("10.0.0.50")))
    before = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    looked_at = schema.clusters.update().values(looked_at=before)
    world.conductor.store.run(lambda c: c.execute(looked_at))
    world.compute.others[556] = OtherVm(556, "pve1", nics=(nic("10.0.0.51", mac=OTHERS_MAC),))


def settle(world: World) -> None:
    server = [VmFacts(row.vmid, "pve1", 1) for row in world.rows(schema.servers) if row.vmid]
    seen(world, VmFacts(555, "pve1", 1), VmFacts(556, "pve1", 1), *server)


@contextlib.contextmanager
def asked_again(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Set when a request looks the second time whether it may have an address."""
    again, polls = threading.Event(), awaited.polls

    def counted() -> Iterator[None]:
        for number, _ in enumerate(polls()):
            if number == 1:
                again.set()
            yield

    monkeypatch.setattr(awaited, "polls", counted)
    yield again


def test_a_port_waits_until_the_vms_were_looked_at(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = port(world)
    unsettle(world)
    endpoint = PortEndpoint(world.conductor.cloud, world.conductor.runner)
    changed = PortChange(fixed_ips=(FixedIp(None, "10.0.0.51"),))
    asked: list[tuple[Callable[[], Any], str]] = [
        (lambda: port(world).ip, "10.0.0.52"),
        (lambda: endpoint.update_port(world.ctxt, mine.id, changed), "already allocated"),
        (
            lambda: endpoint.update_port(world.ctxt, mine.id, PortChange(mac=OTHERS_MAC)),
            "is in use",
        ),
    ]
    for ask, expected in asked:
        unsettle(world)
        assert expected in waited(world, monkeypatch, ask)


def waited(world: World, monkeypatch: pytest.MonkeyPatch, ask: Callable[[], Any]) -> str:
    """What a request is answered that must wait, once the VMs are looked at."""
    with asked_again(world, monkeypatch) as again, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask)
        assert again.wait(60)
        assert not answer.done()
        settle(world)
        try:
            return str(answer.result(60))
        except Conflict as error:
            return error.message


def test_an_attached_interface_waits_until_the_vms_were_looked_at(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "active")
    unsettle(world)
    plugs = InterfaceEndpoint(world.conductor.cloud, world.conductor.runner)
    wanted = Attachment(network_id(world))

    def attach() -> str:
        made = plugs.attach_interface(world.ctxt, uuid, wanted, wait=False)
        return str(next(row.ip for row in world.rows(schema.ports) if row.id == made))

    assert waited(world, monkeypatch, attach) == "10.0.0.52"


def test_what_nobody_looks_at_is_waited_for_in_vain(world: World) -> None:
    """A cluster with an agent will be, and the client may ask again; one without holds up none."""
    unsettle(world)
    cloud = world.conductor.cloud
    new = NewPort("p", network_id(world))

    def work(connection: Any, within: Within) -> list[str]:
        return user_ports.create(connection, [new], "fa:16:3e", None, within=within)

    with pytest.raises(Unavailable, match="not looked at yet"):
        Settling(cloud, 0).run(work)
    assert world.rows(schema.ports) == []
    forced = schema.services.update().values(forced_down=True)
    cloud.store.run(lambda c: c.execute(forced))
    [made] = Settling(cloud, 0).run(work)
    assert [row.id for row in world.rows(schema.ports)] == [made]


def test_what_could_not_be_read_yet_is_waited_for(world: World) -> None:
    world.compute.deaf = True
    states = VmStates("w1", "sim1", clock.utcnow(), ("pve1",), True, (VmFacts(555, "pve1", 1),))
    world.conductor.followed.take(states)
    within = Within("sim1", world.conductor.cloud.since)
    with world.conductor.store.read() as connection, pytest.raises(Unsettled):
        pools.Pools(connection, [network_id(world)], Macs("fa:16:3e", 1), within)
    world.compute.deaf = False
    OtherVms(world.conductor.cloud, world.conductor.followed.take).look()
    with world.conductor.store.read() as connection:
        pools.Pools(connection, [network_id(world)], Macs("fa:16:3e", 1), within)


def test_an_agent_that_stands_still_while_it_reads_delays_no_other_task(world: World) -> None:
    """Else nothing is taken over by this conductor for minutes, and no outcome is looked for."""
    asked, thawed, looked = threading.Event(), threading.Event(), threading.Event()

    def stand_still() -> None:
        asked.set()
        thawed.wait(600)

    world.compute.before_read = stand_still
    try:
        states = VmStates(
            "w1", "sim1", clock.utcnow(), ("pve1",), True, (VmFacts(555, "pve1", 1),)
        )
        world.conductor.followed.take(states)
        assert asked.wait(60)
        world.conductor.runner.periodic.add(Periodic("looks for what is due", 1, looked.set))
        assert looked.wait(60)
    finally:
        thawed.set()


def test_vnis_and_names_of_vnets_that_a_cluster_has(world: World) -> None:
    store = world.conductor.store
    taken = (VnetFacts("theirs", "overlay", 7001), VnetFacts("mnabcdef", "overlay", 7002))
    facts = ClusterFacts("sim1", "9.2", True, vnets=(*taken, VnetFacts("plain", "other")))
    beat = Heartbeat("w1", clock.utcnow(), (), clusters=(facts,))
    store.run(lambda c: registry.take(c, beat))
    with store.read() as connection:
        assert vnets.used_by_others(connection, ["sim1"]) == {7001, 7002}
        assert vnets.used_by_others(connection, [], "overlay") == {7001, 7002}
        assert vnets.used_by_others(connection, [], "other") == set()
