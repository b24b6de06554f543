"""One volume, one quota, and eight processes that want them, on PostgreSQL."""

from __future__ import annotations

import functools
import multiprocessing
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from common.context import RequestContext
from common.errors import MicronovaError
from conductor.endpoints.volumes.transfers import VolumeTransferEndpoint
from conductor.endpoints.volumes.volumes import VolumeEndpoint
from conductor.rpc.servers.server_volumes import AttachRequest
from conductor.rpc.volumes.transfers import NewVolumeTransfer
from conductor.rpc.volumes.volumes import NewVolume
from conductor.servers.guest.begin_volume import VolumeAcceptance
from db import schema
from tests.functional.conductor.harness import Compute, Conductor, Placement, Scheduler, World
from tests.functional.conductor.test_volumes import DATA, Site, a_server
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401

pytestmark = pytest.mark.database

PROCESSES = 8
OURS = RequestContext(user_id="u", project_id="p", roles=["member"])
Work = Callable[[Conductor, list[str], int], Counter[str]]


@pytest.fixture
def site(tmp_path: Path, postgres_url: str) -> Iterator[Site]:  # noqa: F811
    # As many hosts as there have to be VMIDs for.
    hosts = tuple(f"pve{number}" for number in range(1, 7))
    world = World(tmp_path, url=postgres_url, hosts=hosts)
    world.storages.append(DATA)
    world.beat()
    world.conductor.runner.start()
    yield Site(world)
    world.close()
    for pool in (world.conductor.store._writer, world.conductor.store._reader):
        pool.dispose()


def outcome(work: Callable[[], object], well: str = "well") -> str:
    try:
        work()
    except MicronovaError as error:
        return type(error).__name__
    return well


def attach(conductor: Conductor, known: list[str], number: int) -> Counter[str]:
    """Attach one volume to a server of this process's own."""
    volume_id, *servers = known
    plugs = VolumeAcceptance(conductor.cloud)
    return Counter(
        [outcome(lambda: plugs.attach(OURS, servers[number], AttachRequest(volume_id)))]
    )


def attach_or_delete(conductor: Conductor, known: list[str], number: int) -> Counter[str]:
    """Every second process deletes it."""
    if number % 2 == 0:
        return attach(conductor, known, number)
    endpoint = VolumeEndpoint(conductor.cloud)
    return Counter(
        [outcome(lambda: endpoint.delete_volume(OURS, known[0], force=False), "deleted")]
    )


def attach_many(conductor: Conductor, known: list[str], number: int) -> Counter[str]:
    """Attach and detach many volumes, and several to each server, in an order of its own."""
    volumes, servers = known[:8], known[8:]
    plugs, chance = VolumeAcceptance(conductor.cloud), random.Random(number)
    counts: Counter[str] = Counter()
    for _ in range(20):
        server, volume_id = chance.choice(servers), chance.choice(volumes)
        if chance.random() < 0.7:
            wish = AttachRequest(volume_id)
            counts[outcome(functools.partial(plugs.attach, OURS, server, wish))] += 1
        else:
            counts[outcome(functools.partial(plugs.detach, OURS, server, volume_id))] += 1
    return counts


def make(conductor: Conductor, known: list[str], number: int) -> Counter[str]:
    """Make volumes until the quota refuses them, and a little longer."""
    endpoint = VolumeEndpoint(conductor.cloud)
    conductor.cloud.conf.set_override("volumes", 9, group="quota")
    conductor.cloud.conf.set_override("gigabytes", 40, group="quota")
    return Counter(
        outcome(lambda: endpoint.create_volume(OURS, NewVolume("p", 1 + number))) for _ in range(4)
    )


def extend(conductor: Conductor, known: list[str], number: int) -> Counter[str]:
    """Extend a volume of this process's own, by what not all of them can have."""
    conductor.cloud.conf.set_override("gigabytes", 40, group="quota")
    endpoint = VolumeEndpoint(conductor.cloud)
    return Counter([outcome(lambda: endpoint.extend_volume(OURS, known[number], 9, in_use=False))])


def accept(conductor: Conductor, known: list[str], number: int) -> Counter[str]:
    """Accept one volume that is offered, for a project of this process's own."""
    ctxt = RequestContext(user_id="u", project_id=f"p{number}", roles=["member"])
    endpoint = VolumeTransferEndpoint(conductor.cloud)
    return Counter([outcome(lambda: endpoint.accept_volume_transfer(ctxt, *known))])


def accept_each(conductor: Conductor, known: list[str], number: int) -> Counter[str]:
    """Accept a volume of this process's own, all for one project that can't have all."""
    conductor.cloud.conf.set_override("gigabytes", 20, group="quota")
    ctxt = RequestContext(user_id="u", project_id="q", roles=["member"])
    endpoint = VolumeTransferEndpoint(conductor.cloud)
    mine = known[2 * number : 2 * number + 2]
    return Counter([outcome(lambda: endpoint.accept_volume_transfer(ctxt, *mine))])


def accept_or_withdraw(conductor: Conductor, known: list[str], number: int) -> Counter[str]:
    """Every second process withdraws it."""
    if number % 2 == 0:
        return accept(conductor, known, number)
    endpoint = VolumeTransferEndpoint(conductor.cloud)
    gone = "withdrawn"
    return Counter([outcome(lambda: endpoint.delete_volume_transfer(OURS, known[0]), gone)])


def _run(url: str, work: Work, known: list[str], number: int, start: Any, said: Any) -> None:
    placement = Placement()
    scheduler = Scheduler(placement, ["pve1"])
    conductor = Conductor(url, scheduler, Compute(), placement, f"p{number}")
    start.wait(60)
    said.put(work(conductor, known, number))
    for pool in (conductor.store._writer, conductor.store._reader):
        pool.dispose()


def at_once(site: Site, work: Work, known: list[str]) -> Counter[str]:
    """Run the work in all processes and return what came of it; nobody works on it."""
    if site.world.conductor.runner.periodic.alive:
        site.world.conductor.runner.stop()
    # However long it takes, the agents are alive.
    site.world.beat()
    context = multiprocessing.get_context("forkserver")
    # One import for all of them.
    context.set_forkserver_preload([__name__])
    said, start = context.Queue(), context.Barrier(PROCESSES)
    workers = [
        context.Process(target=_run, args=(site.world.url, work, known, number, start, said))
        for number in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    counts: Counter[str] = Counter()
    for _ in workers:
        counts += said.get(timeout=120)
    for worker in workers:
        worker.join(30)
    said.close()
    said.join_thread()
    assert [worker.exitcode for worker in workers] == [0] * PROCESSES
    return counts


def attached(site: Site) -> list[tuple[str, str]]:
    rows = site.world.rows(schema.volume_attachments)
    return [(one.volume_id, one.server_uuid) for one in rows]


def test_one_volume_goes_to_one_of_eight_servers(site: Site) -> None:
    servers = [a_server(site) for _ in range(PROCESSES)]
    volume_id = site.made()
    counts = at_once(site, attach, [volume_id, *servers])
    assert counts == {"well": 1, "Invalid": PROCESSES - 1}
    ((volume, server),) = attached(site)
    assert (volume, server in servers) == (volume_id, True)
    assert site.row(volume_id).status == "attaching"
    actions = [one.action for one in site.world.rows(schema.operations)]
    assert actions.count("attach_volume") == 1


def test_one_that_is_deleted_is_attached_to_nobody(site: Site) -> None:
    servers = [a_server(site) for _ in range(PROCESSES)]
    for volume_id in [site.made() for _ in range(3)]:
        counts = at_once(site, attach_or_delete, [volume_id, *servers])
        assert counts["well"] + counts["deleted"] == 1, counts
        status = site.row(volume_id).status
        if counts["deleted"]:
            assert (status, attached(site)) == ("deleting", [])
        else:
            assert (status, len(attached(site))) == ("attaching", 1)
            site.world.conductor.store.run(lambda c: c.execute(schema.volume_attachments.delete()))


def test_no_slot_is_given_twice(site: Site) -> None:
    servers = [a_server(site) for _ in range(2)]
    volumes = [site.made() for _ in range(PROCESSES)]
    counts = at_once(site, attach_many, [*volumes, *servers])
    assert counts.keys() <= {"well", "Invalid", "NotFound"}
    rows = site.world.rows(schema.volume_attachments)
    assert len({one.volume_id for one in rows}) == len(rows) > 0
    assert len({(one.server_uuid, one.slot) for one in rows}) == len(rows)
    begun = {one.id: one.status for one in site.world.rows(schema.volumes)}
    assert {begun[one.volume_id] for one in rows} == {"attaching"}
    assert list(begun.values()).count("attaching") == len(rows)


def test_the_quota_is_never_exceeded(site: Site) -> None:
    counts = at_once(site, make, [])
    rows = site.world.rows(schema.volumes)
    assert counts.keys() == {"well", "QuotaExceeded"}
    assert counts["well"] == len(rows) <= 9
    assert sum(one.size_gib for one in rows) <= 40
    # Nothing that would have fitted was refused: the smallest is of 1 GiB, and asked for 4 times.
    assert len(rows) == 9 or sum(one.size_gib for one in rows) > 40 - 8


def test_what_grows_never_exceeds_it(site: Site) -> None:
    volumes = [site.made(2) for _ in range(PROCESSES)]
    counts = at_once(site, extend, volumes)
    # 16 GiB are there, and three of them may have 7 more.
    assert counts == {"well": 3, "QuotaExceeded": PROCESSES - 3}
    assert sum(one.size_gib for one in site.world.rows(schema.volumes)) == 16 + 3 * 7


def offered(site: Site, volume_id: str) -> list[str]:
    endpoint = VolumeTransferEndpoint(site.world.conductor.cloud)
    made = endpoint.create_volume_transfer(OURS, NewVolumeTransfer(volume_id))
    return [made.transfer_id, made.auth_key]


def test_one_of_eight_projects_gets_what_is_offered(site: Site) -> None:
    volume_id = site.made()
    counts = at_once(site, accept, offered(site, volume_id))
    assert counts == {"well": 1, "NotFound": PROCESSES - 1}
    (transfer,) = site.world.rows(schema.volume_transfers)
    row = site.row(volume_id)
    assert (row.status, row.project_id) == ("available", transfer.destination_project_id)
    assert row.project_id in {f"p{number}" for number in range(PROCESSES)}
    actions = [one.action for one in site.world.rows(schema.operations)]
    assert actions.count("accept-transfer") == 1


def test_what_is_withdrawn_is_accepted_by_nobody(site: Site) -> None:
    for volume_id in [site.made() for _ in range(3)]:
        counts = at_once(site, accept_or_withdraw, offered(site, volume_id))
        assert counts["well"] + counts["withdrawn"] == 1, counts
        assert counts["NotFound"] == PROCESSES - 1
        row = site.row(volume_id)
        assert (row.status, row.project_id == "p") == ("available", counts["withdrawn"] == 1)


def test_what_is_accepted_never_exceeds_the_quota(site: Site) -> None:
    known = [part for _ in range(PROCESSES) for part in offered(site, site.made(4))]
    counts = at_once(site, accept_each, known)
    # Five of 4 GiB each are all that the project may have.
    assert counts == {"well": 5, "QuotaExceeded": PROCESSES - 5}
    rows = site.world.rows(schema.volumes)
    assert sum(one.size_gib for one in rows if one.project_id == "q") == 20
    waiting = [one for one in rows if one.status == "awaiting-transfer"]
    assert [one.project_id for one in waiting] == ["p"] * (PROCESSES - 5)
