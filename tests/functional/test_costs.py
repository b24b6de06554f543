"""What a create and a delete cost in statements and messages, counted over every service.

The first server on a host is left out: it makes the host known to more tables. The numbers are
stated in docs/operate.md; a change that needs more must say so there and here.
"""

from __future__ import annotations

import collections
import functools
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest
import requests
import sqlalchemy as sa
from falcon import testing
from keystoneauth1 import adapter as ksa_adapter
from keystoneauth1 import session as ksa_session
from keystoneauth1 import token_endpoint
from oslo_messaging.transport import RPCTransport

import db.migrate
import placement.db.migrate
from api.compute.app import make_app as make_compute_api
from api.volume.app import make_app as make_volume_api
from common import config
from common.rpc.localbus import LocalDriver
from compute.drivers import hypervisors
from compute.worker.service import ComputeService
from conductor.rpc import connect
from conductor.service import ConductorService
from db import engine
from launcher import configuration
from launcher.embedded.inprocess import WsgiAdapter
from placement.app import make_app as make_placement
from placement.client import PlacementClient
from scheduler.service import SchedulerService
from tests.fixtures import null
from tests.fixtures.auth import ADMIN, MEMBER, SERVICE, header_auth
from tests.fixtures.null import options as options_of_null
from tests.functional.cloud import eventually

#: statements on the cloud database by everybody, BEGIN left out: create → ACTIVE, delete → gone
CREATE_STATEMENTS = 35
DELETE_STATEMENTS = 15
#: statements on the placement database
CREATE_PLACEMENT_STATEMENTS = 12
DELETE_PLACEMENT_STATEMENTS = 6
#: of nine servers in one request, which are decided and claimed together
BATCH, BATCHES = 9, 8
QUOTA = BATCH * BATCHES
BATCH_STATEMENTS, BATCH_PLACEMENT_STATEMENTS = 75, 14
#: and of each report of the agents, which has the outcomes of the builds that ended at once
REPORT_STATEMENTS = 7
HOSTS = 3
#: one of them before the VM is started, so that no second one of its server ever runs; the starts
#: of several builds at once share it
CREATE_CALLS, CREATE_CASTS = 3, 10
#: of a create over the quota: it is looked at, refused, and kept why
REFUSED_STATEMENTS = 6
DELETE_CALLS, DELETE_CASTS = 1, 8
#: of a pause, an unpause, a suspend and a resume each; a suspend asks the host first
POWER_STATEMENTS = {"pause": 15, "unpause": 15, "suspend": 17, "resume": 15}
POWER_CALLS = {"pause": 1, "unpause": 1, "suspend": 2, "resume": 1}
POWER_CASTS = 2
#: of a live migration to a host that the scheduler chooses
LIVE_STATEMENTS, LIVE_PLACEMENT_STATEMENTS = 35, 19
LIVE_CALLS, LIVE_CASTS = 2, 6
#: of a volume: made, attached to a server, detached, deleted
VOLUME_STATEMENTS = {"create": 28, "attach": 22, "detach": 19, "delete": 24}
VOLUME_CALLS, VOLUME_CASTS = 1, 2


#: options where nothing is counted: an operation that was postponed, as on a busy machine, is
#: taken up again
SCANS: Sequence[tuple[str, str, Any]] = (("conductor", "scan_seconds", 1.0),)


class CountingDriver(LocalDriver):
    """The embedded bus, counting what belongs to operations."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sent: collections.Counter[str] = collections.Counter()

    def send(self, target: Any, ctxt: Any, message: Any, *args: Any, **kwargs: Any) -> Any:
        kind = "call" if kwargs.get("wait_for_reply") or (args and args[0]) else "cast"
        self.sent[f"{kind} {message['method']}"] += 1
        return super().send(target, ctxt, message, *args, **kwargs)

    def count(self, kind: str) -> int:
        """Messages of operations, signs of life left out."""
        signs = {"tick", "alive", "heartbeat", "update_hosts", "announce", "ping"}
        return sum(
            number
            for name, number in self.sent.items()
            if name.split()[0] == kind and name.split()[1] not in signs
        )


class Service(Protocol):
    """What every service of the cloud can do."""

    def start(self) -> None:
        """Begin to work."""

    def stop(self) -> None:
        """End, once what is running has ended."""


class Cloud:
    """All services in this process, on SQLite or ``urls``, without a hypervisor.

    ``options`` are (group, name, value).
    """

    def __init__(
        self,
        folder: Path,
        urls: Sequence[str] = (),
        options: Sequence[tuple[str, str, Any]] = (),
    ) -> None:
        cloud_url, placement_url = urls or [
            f"sqlite:///{folder}/{name}.sqlite" for name in ("cloud", "placement")
        ]
        db.migrate.upgrade(cloud_url)
        placement.db.migrate.upgrade(placement_url)
        conf = config.load([*configuration.registers(), options_of_null.register])
        for group, name, value in (
            ("database", "connection", cloud_url),
            ("database", "reader_connection", cloud_url),
            ("placement_database", "connection", placement_url),
            ("compute", "driver", null.DRIVER),
            ("compute", "worker", "w"),
            ("null", "hosts", HOSTS),
            ("seed", "flavors", ["1:m1.tiny:1:512:1"]),
            *(("quota", name, QUOTA) for name in ("instances", "cores")),
            # Nothing that looks for work by itself shall be counted.
            ("conductor", "scan_seconds", 3600),
            ("conductor", "agent_lease_seconds", 36000),
            # Where it is auto, each process asks once in five seconds whether clusters filter.
            ("networks", "firewall", "off"),
            *options,
        ):
            conf.set_override(name, value, group=group)
        # Its worker's name is held on this bus only: other tests have such a worker, too.
        conf.set_override("transport_url", bus := f"micronova-local://{folder.name}")
        self.driver = CountingDriver(conf, bus, "openstack")
        transport = self.transport = RPCTransport(self.driver)
        self.placement_app = make_placement(conf, protect=header_auth)
        client = self.placement = PlacementClient(self._adapter())
        self.conductor = ConductorService(conf, transport, client)
        self.hypervisors = hypervisors(conf)
        self.services: list[Service] = [
            self.conductor,
            SchedulerService(conf, transport, client),
            ComputeService(conf, transport, self.hypervisors, client),
        ]
        self.reader = engine.reader(cloud_url)
        self.statements: collections.Counter[str] = collections.Counter()
        self._engines: set[sa.Engine] = set()
        sa.event.listen(sa.Engine, "before_cursor_execute", self._count)
        conductor = connect(transport)
        app = make_compute_api(conf, conductor, self.reader, protect=header_auth)
        self.api = testing.TestClient(app)
        self.volume_api = testing.TestClient(
            make_volume_api(conf, self.reader, conductor, header_auth)
        )

    def _adapter(self) -> ksa_adapter.Adapter:
        session = requests.Session()
        session.mount("http://placement", WsgiAdapter(self.placement_app))
        auth = token_endpoint.Token("http://placement", SERVICE)
        return ksa_adapter.Adapter(ksa_session.Session(auth=auth, session=session))

    def _count(self, connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        self._engines.add(connection.engine)
        # Nor what each conductor writes and reads every few seconds: its sign, and whether the
        # database was restored.
        if not statement.startswith(("BEGIN", "UPDATE leases", "SELECT cloud_identity")):
            name = "placement" if "placement" in str(connection.engine.url) else "cloud"
            self.statements[name] += 1

    def start(self) -> None:
        for service in self.services:
            service.start()

    def ready(self) -> bool:
        """Whether every host is known to the API and has its inventory in placement."""
        hosts = self.call("GET", "/v2.1/os-hypervisors", ADMIN)["hypervisors"]
        return len(hosts) == len(self.placement.candidates({"VCPU": 1}).uuids) == HOSTS

    def audit(self) -> Any:
        """The report of an audit that saw all and nothing in between; None: not yet."""
        begun = self.call("POST", "/v2.1/audits", ADMIN)["audit"]["id"]

        def ended() -> Any:
            audit = self.call("GET", f"/v2.1/audits/{begun}", ADMIN)["audit"]
            return audit["report"] if audit["state"] == "done" else None

        report = eventually(ended)
        return report if report["complete"] and not report["in_flux"] else None

    def stop(self) -> None:
        for service in reversed(self.services):
            service.stop()
        sa.event.remove(sa.Engine, "before_cursor_execute", self._count)
        for one in self._engines:
            one.dispose()

    def call(self, method: str, path: str, token: str = MEMBER, **keywords: Any) -> Any:
        headers = {"X-Auth-Token": token, "OpenStack-API-Version": "compute 2.90"}
        api = self.volume_api if path.startswith("/v3/") else self.api
        answer = api.simulate_request(method, path, headers=headers, **keywords)
        assert answer.status_code < 400, answer.text
        return answer.json if answer.content else None


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    made = Cloud(tmp_path)
    made.start()
    try:
        eventually(made.ready)
        yield made
        assert eventually(made.audit)["clean"]
    finally:
        made.stop()


def test_a_create_and_a_delete(cloud: Cloud, tmp_path: Path) -> None:
    body = a_create(tmp_path)
    for _ in range(2):
        cloud.statements.clear()
        cloud.driver.sent.clear()
        uuid = cloud.call("POST", "/v2.1/servers", json=body)["server"]["id"]
        eventually(is_state(tmp_path, uuid, "active"))
    assert cloud.statements["cloud"] <= CREATE_STATEMENTS
    assert cloud.statements["placement"] <= CREATE_PLACEMENT_STATEMENTS
    assert cloud.driver.count("call") == CREATE_CALLS
    assert cloud.driver.count("cast") <= CREATE_CASTS

    cloud.statements.clear()
    cloud.driver.sent.clear()
    cloud.call("DELETE", f"/v2.1/servers/{uuid}")
    eventually(is_state(tmp_path, uuid, "deleted"))
    assert cloud.statements["cloud"] <= DELETE_STATEMENTS
    assert cloud.statements["placement"] <= DELETE_PLACEMENT_STATEMENTS
    assert cloud.driver.count("call") == DELETE_CALLS
    assert cloud.driver.count("cast") <= DELETE_CASTS


def test_a_pause_and_a_suspend_and_the_ways_back(cloud: Cloud, tmp_path: Path) -> None:
    body = a_create(tmp_path)
    uuid = cloud.call("POST", "/v2.1/servers", json=body)["server"]["id"]
    eventually(is_state(tmp_path, uuid, "active"))
    ends = {"pause": "paused", "unpause": "active", "suspend": "suspended", "resume": "active"}
    for action in (*ends, *ends):
        cloud.statements.clear()
        cloud.driver.sent.clear()
        cloud.call("POST", f"/v2.1/servers/{uuid}/action", json={action: None})
        eventually(is_state(tmp_path, uuid, ends[action]))
        assert cloud.statements["cloud"] <= POWER_STATEMENTS[action], action
        assert cloud.statements["placement"] == 0
        assert cloud.driver.count("call") == POWER_CALLS[action]
        assert cloud.driver.count("cast") <= POWER_CASTS
    cloud.call("DELETE", f"/v2.1/servers/{uuid}")
    eventually(is_state(tmp_path, uuid, "deleted"))


def test_a_live_migration(cloud: Cloud, tmp_path: Path) -> None:
    body = a_create(tmp_path)
    uuid = cloud.call("POST", "/v2.1/servers", json=body)["server"]["id"]
    eventually(is_state(tmp_path, uuid, "active"))
    move = {"os-migrateLive": {"host": None, "block_migration": "auto"}}
    done = "SELECT count(*) FROM migrations WHERE status = 'completed'"
    for already in range(2):
        cloud.statements.clear()
        cloud.driver.sent.clear()
        cloud.call("POST", f"/v2.1/servers/{uuid}/action", ADMIN, json=move)
        eventually(is_found(tmp_path, done, already + 1))
    assert cloud.statements["cloud"] <= LIVE_STATEMENTS
    assert cloud.statements["placement"] <= LIVE_PLACEMENT_STATEMENTS
    assert cloud.driver.count("call") == LIVE_CALLS
    assert cloud.driver.count("cast") <= LIVE_CASTS
    cloud.call("DELETE", f"/v2.1/servers/{uuid}")
    eventually(is_state(tmp_path, uuid, "deleted"))


def test_a_volume_s_life(cloud: Cloud, tmp_path: Path) -> None:
    body = a_create(tmp_path)
    uuid = cloud.call("POST", "/v2.1/servers", json=body)["server"]["id"]
    eventually(is_state(tmp_path, uuid, "active"))

    def counted(what: str, act: Callable[[], Any], is_so: Callable[[], bool]) -> Any:
        cloud.statements.clear()
        cloud.driver.sent.clear()
        answer = act()
        eventually(is_so)
        assert cloud.statements["cloud"] <= VOLUME_STATEMENTS[what], what
        assert cloud.statements["placement"] == 0
        assert cloud.driver.count("call") == VOLUME_CALLS
        assert cloud.driver.count("cast") <= VOLUME_CASTS
        return answer

    def is_now(status: str) -> Callable[[], bool]:
        query = f"SELECT count(*) FROM volumes WHERE status = '{status}'"
        return is_found(tmp_path, query, 1)

    of_server = f"/v2.1/servers/{uuid}/os-volume_attachments"
    hints = {"OS-SCH-HNT:scheduler_hints": {"local_to_instance": uuid}}
    new = {"volume": {"size": 1}} | hints
    for _ in range(2):
        made = counted(
            "create", lambda: cloud.call("POST", "/v3/volumes", json=new), is_now("available")
        )["volume"]["id"]
        wish = {"volumeAttachment": {"volumeId": made}}
        counted(
            "attach",
            functools.partial(cloud.call, "POST", of_server, json=wish),
            is_now("in-use"),
        )
        counted(
            "detach",
            functools.partial(cloud.call, "DELETE", f"{of_server}/{made}"),
            is_now("available"),
        )
        counted(
            "delete",
            functools.partial(cloud.call, "DELETE", f"/v3/volumes/{made}"),
            is_found(tmp_path, "SELECT count(*) FROM volumes", 0),
        )
    cloud.call("DELETE", f"/v2.1/servers/{uuid}")
    eventually(is_state(tmp_path, uuid, "deleted"))


def test_a_create_over_the_quota(cloud: Cloud, tmp_path: Path) -> None:
    body = a_create(tmp_path, min_count=QUOTA + 1)
    headers = {"X-Auth-Token": MEMBER, "OpenStack-API-Version": "compute 2.90"}
    kept = "SELECT count(*) FROM refusals"
    for already in range(2):
        cloud.statements.clear()
        cloud.driver.sent.clear()
        answer = cloud.api.simulate_post("/v2.1/servers", headers=headers, json=body)
        assert answer.status_code == 403
        eventually(is_found(tmp_path, kept, already + 1))
    assert cloud.statements["cloud"] <= REFUSED_STATEMENTS
    assert cloud.statements["placement"] == 0
    assert (cloud.driver.count("call"), cloud.driver.count("cast")) == (1, 1)
    story = cloud.call("GET", f"/v2.1/explanations/{answer.headers['x-openstack-request-id']}")
    [refused] = story["explanation"]["operations"]
    quota = {"instances": {"limit": QUOTA, "used": 0, "asked": QUOTA + 1}}
    assert refused["events"][1]["detail"].items() >= quota.items()
    assert look(tmp_path, "SELECT count(*) FROM operations") == 0


def test_many_at_once_are_decided_and_claimed_together(cloud: Cloud, tmp_path: Path) -> None:
    body = a_create(tmp_path, min_count=BATCH, max_count=BATCH)
    active = "SELECT count(*) FROM servers WHERE vm_state = 'active'"
    statements = []
    for already in range(0, BATCHES * BATCH, BATCH):
        cloud.statements.clear()
        cloud.driver.sent.clear()
        cloud.call("POST", "/v2.1/servers", json=body)
        eventually(is_found(tmp_path, active, already + BATCH))
        assert cloud.driver.sent["call select_many"] == 1
        assert CREATE_CALLS <= cloud.driver.count("call") < CREATE_CALLS + BATCH
        assert cloud.statements["placement"] <= BATCH_PLACEMENT_STATEMENTS or not already
        # On a busy machine the builds end one after the other, and are more reports.
        of_reports = REPORT_STATEMENTS * cloud.driver.sent["cast report"]
        statements.append(cloud.statements["cloud"] - of_reports)
        if statements[-1] <= BATCH_STATEMENTS and already:
            break
    # Periodic tasks may meet a batch, and the first one has hosts to make known.
    assert min(statements) <= BATCH_STATEMENTS, statements
    spread = "SELECT count(*) FROM servers GROUP BY host ORDER BY 1"
    assert look(tmp_path, spread) == len(statements) * BATCH // HOSTS


def look(folder: Path, query: str, *values: str) -> Any:
    """Read the database past everything that is counted."""
    connection = sqlite3.connect(folder / "cloud.sqlite")
    try:
        return connection.execute(query, values).fetchone()[0]
    finally:
        connection.close()


def is_found(folder: Path, query: str, number: int) -> Callable[[], bool]:
    """Return a check of what a query says."""
    return lambda: bool(look(folder, query) == number)


def is_state(folder: Path, uuid: str, state: str) -> Callable[[], bool]:
    """Return a check of a server's state."""
    return lambda: read_state(folder, uuid) == state


def a_create(folder: Path, **counts: int) -> dict[str, Any]:
    """Return the body of a request for servers."""
    image = image_id(folder)
    server = {"name": "s", "flavorRef": "1", "imageRef": image, "networks": "none"}
    return {"server": {**server, **counts}}


def image_id(folder: Path) -> str:
    return str(look(folder, "SELECT id FROM images LIMIT 1"))


def read_state(folder: Path, uuid: str) -> str:
    return str(look(folder, "SELECT vm_state FROM servers WHERE uuid = ?", uuid))
