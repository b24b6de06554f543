"""Eight clients with different actions at one server, in rounds: each is accepted or refused, and
afterwards VM, claim and record agree.

What is drawn is fixed by seeds. Between rounds an operator brings the server back to a state that
everything else may start from.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from common.resources.states import PowerState
from db import schema
from tests.fixtures import auth
from tests.functional import backends
from tests.functional.cloud import eventually
from tests.functional.test_record import Site

CLIENTS = 8
ROUNDS = 4
IMAGES = ["debian-12", "install.iso"]

#: of an interface, which has a door of its own
ATTACH, DETACH = {"attach": None}, {"detach": None}
ACCEPTED = {200, 202, 204}
#: Nova's 400 and 404 only for what the server has, or has not
ELSE = {"resize": {400, 409}, "detach": {404, 409}}
#: how many of the clients ask for what only some actions make possible
LATE = 2

#: the way from each vm_state back to a state from which all else may start
BACK: dict[str, Any] = {
    "paused": {"unpause": None},
    "suspended": {"resume": None},
    "stopped": {"os-start": None},
    "rescued": {"unrescue": None},
    "resized": {"confirmResize": None},
    "shelved": {"unshelve": None},
    "shelved_offloaded": {"unshelve": None},
    "error": {"reboot": {"type": "HARD"}},
    "soft-delete": {"restore": None},
}
#: what only an administrator may
OPERATORS = {"migrate", "os-migrateLive", "os-resetState", "shelveOffload"}


class Arena(Site):
    """A site where many ask at once; ``uuid`` is the server's."""

    uuid = ""

    def images(self) -> dict[str, str]:
        """The images by name."""
        return {row.name: row.id for row in self.rows(sa.select(schema.images))}

    def network(self) -> str:
        return str(self.rows(sa.select(schema.networks.c.id))[0][0])

    def row(self) -> Any:
        columns = schema.servers.c
        return self.rows(sa.select(schema.servers).where(columns.uuid == self.uuid))[0]

    def ports(self) -> list[Any]:
        columns = schema.ports.c
        return self.rows(sa.select(schema.ports).where(columns.server_uuid == self.uuid))

    def ask_for(self, body: Any) -> int:
        """The status of an action, requested by a user that may."""
        if body in (ATTACH, DETACH):
            return self.attach() if body == ATTACH else self.detach()
        token = auth.ADMIN if OPERATORS & body.keys() else auth.MEMBER
        return self.act(self.uuid, body, token)

    def attach(self) -> int:
        body = {"interfaceAttachment": {"net_id": self.network()}}
        return int(self.ask("POST", f"/servers/{self.uuid}/os-interface", body).status_code)

    def detach(self) -> int:
        ports = self.ports()
        port = ports[-1].id if ports else self.uuid
        path = f"/servers/{self.uuid}/os-interface/{port}"
        return int(self.ask("DELETE", path).status_code)

    def at_rest(self) -> bool:
        return self.open_operations(self.uuid) == 0 and self.row().task_state is None

    def calm(self) -> None:
        """Bring the server back, one action after the other."""
        eventually(self.at_rest)
        self.act(self.uuid, {"unlock": None}, auth.ADMIN)
        while self.row().vm_state != "active":
            body = BACK[self.row().vm_state]
            status = self.act(self.uuid, body, auth.ADMIN)
            assert status in ACCEPTED, (body, status, self.row().vm_state)
            eventually(self.at_rest)

    def mend(self) -> None:
        """Do what an administrator does who has reset a server's state: its disk is made again."""
        body = {"rebuild": {"imageRef": self.row().image_id}}
        assert self.act(self.uuid, body, auth.ADMIN) in ACCEPTED
        eventually(self.at_rest)
        self.calm()

    def require_agreement(self) -> None:
        """The VM, its size, its host, its disk, its interfaces and its claim are the record's."""
        row = self.row()
        [hypervisor] = self.cloud.hypervisors
        vms = hypervisor.vms  # type: ignore[attr-defined]
        [vm] = [one for one in vms.values() if one.server_uuid == self.uuid]
        assert vms[row.vmid] is vm
        size = row.flavor["vcpus"], row.flavor["memory_mib"]
        assert (vm.power, vm.node, vm.image_id) == (PowerState.RUNNING, row.node, row.image_id)
        assert (vm.vcpus, vm.memory_mib) == (row.vcpus, row.memory_mib) == size
        assert (vm.before, vm.macs) == (None, {port.mac for port in self.ports()})
        claims = self.claims()
        assert claims == {
            row.host: {
                self.uuid: {
                    "VCPU": row.vcpus,
                    "MEMORY_MB": row.memory_mib,
                    "DISK_GB": row.disk_gib,
                }
            }
        }

    def require_one_after_the_other(self) -> None:
        """Once another operation has changed the server, one changes it no more."""
        columns = schema.transitions.c
        query = sa.select(columns.operation_id).where(columns.server_uuid == self.uuid)
        changes = self.rows(query.order_by(columns.id))
        runs = [key for key, _ in itertools.groupby(row.operation_id for row in changes)]
        assert len(runs) == len(set(runs))

    def claims(self) -> dict[str, dict[str, dict[str, int]]]:
        """What is held of each host, by consumer."""
        hosts = self.rows(sa.select(schema.hosts.c.host, schema.hosts.c.uuid))
        held = {row.host: self.cloud.placement.provider_allocations(row.uuid) for row in hosts}
        return {host: dict(found) for host, found in held.items() if found}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Arena]:
    folder = tmp_path_factory.mktemp("cloud")
    urls: list[str] = []
    options = [
        ("null", "images", IMAGES),
        ("seed", "flavors", ["1:m1.tiny:1:512:1", "2:m1.small:2:1024:2"]),
        # What stands still for long is found.
        ("conductor", "scan_seconds", 2),
    ]
    if request.param == "postgresql":
        backends.require(backends.INITDB, backends.POSTGRES)
        server = request.getfixturevalue("postgres")
        server.execute("CREATE DATABASE cloud", "CREATE DATABASE placement")
        urls = [server.url("cloud"), server.url("placement")]
    made = Arena(folder, urls, options)
    made.cloud.start()
    try:
        eventually(made.cloud.ready)
        yield made
        assert eventually(made.cloud.audit)["clean"]
    finally:
        made.cloud.stop()


@pytest.fixture(scope="module")
def postgres() -> Iterator[backends.Postgres]:
    with backends.postgres() as server:
        yield server


def asked(site: Arena, *, resets: bool) -> tuple[list[Any], list[Any]]:
    """What an active server may be asked, and what only some that follow may; ``resets``: its
    state is often reset, too."""
    images = site.images()
    first: list[Any] = [
        *({"pause": None}, {"suspend": None}, {"os-stop": None}, {"shelve": None}),
        *({"reboot": {"type": "SOFT"}}, {"reboot": {"type": "HARD"}}),
        *({"resize": {"flavorRef": flavor}} for flavor in ("1", "2")),
        *({"migrate": None}, {"os-migrateLive": {"host": None, "block_migration": "auto"}}),
        *({"rebuild": {"imageRef": images[name]}} for name in IMAGES),
        *({"rescue": {"rescue_image_ref": images[name]}} for name in IMAGES),
        {"createImage": {"name": "copy"}},
        {"createBackup": {"name": "copy", "backup_type": "daily", "rotation": 1}},
        *({"changePassword": {"adminPass": "secret"}}, {"lock": None}, ATTACH, DETACH),
    ]
    if resets:
        first += [{"os-resetState": {"state": state}} for state in ("active", "error")] * 4
    then = ("unpause", "resume", "os-start", "confirmResize", "revertResize", "unrescue")
    return first, [{name: None} for name in (*then, "shelveOffload", "unshelve", "unlock")]


def act(site: Arena, body: Any) -> Any:
    """Do it, and return the server's row when it is at rest."""
    assert site.ask_for(body) in ACCEPTED
    eventually(site.at_rest)
    return site.row()


def test_moves_and_interfaces(site: Arena) -> None:
    """Each one alone: where the server is, what it holds there, and the VM's network cards."""
    site.uuid = site.server(site.images()["debian-12"])
    home = site.row().host
    moved = act(site, {"migrate": None})
    assert (moved.vm_state, moved.host != home) == ("resized", True)
    assert site.claims().keys() == {home, moved.host}
    assert act(site, {"revertResize": None}).host == home
    site.require_agreement()
    there = act(site, {"migrate": None}).host
    assert act(site, {"confirmResize": None}).host == there
    site.require_agreement()
    live = {"host": home, "block_migration": "auto"}
    assert act(site, {"os-migrateLive": live}).host == home
    site.require_agreement()

    services = site.ask("GET", "/os-services", token=auth.ADMIN).json["services"]
    [service] = [one for one in services if one["host"] == home]
    path = f"/os-services/{service['id']}"
    site.ask("PUT", path, {"status": "disabled"}, auth.ADMIN)
    larger = act(site, {"resize": {"flavorRef": "2"}})
    site.ask("PUT", path, {"status": "enabled"}, auth.ADMIN)
    assert (larger.vm_state, larger.memory_mib, larger.host != home) == ("resized", 1024, True)
    act(site, {"confirmResize": None})
    site.require_agreement()

    act(site, ATTACH)
    assert len(site.ports()) == 1
    site.require_agreement()
    act(site, DETACH)
    assert site.ports() == []
    site.require_agreement()
    assert site.ask("DELETE", f"/servers/{site.uuid}").status_code == 204
    eventually(lambda: site.show(site.uuid) is None)
    assert site.claims() == {}


def refusals(body: dict[str, Any]) -> set[int]:
    [action] = body
    return ELSE.get(action, {409})


@pytest.mark.parametrize(("seed", "resets"), [(1, False), (2, False), (3, True)])
def test_rounds_of_eight_clients(site: Arena, seed: int, resets: bool) -> None:
    site.uuid = site.server(site.images()["debian-12"])
    chance, accepted = random.Random(seed), 0
    for _ in range(ROUNDS):
        first, then = asked(site, resets=resets)
        bodies = [*chance.sample(first, CLIENTS - LATE), *chance.sample(then, LATE)]
        found = site.together(*(lambda body=body: site.ask_for(body) for body in bodies))
        answers = list(zip(found, bodies, strict=True))
        assert all(status in ACCEPTED | refusals(body) for status, body in answers), answers
        accepted += sum(status in ACCEPTED for status in found)
        site.calm()
        if resets:
            site.mend()
        site.require_agreement()
        site.require_one_after_the_other()
    assert accepted >= ROUNDS
    assert site.ask("DELETE", f"/servers/{site.uuid}").status_code == 204
    eventually(lambda: site.show(site.uuid) is None)
    assert site.claims() == {}
    states = {row.status for row in site.rows(sa.select(schema.images.c.status))}
    assert states <= {"active", "deleted"}
