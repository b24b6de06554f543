"""What each service's users may do, at servers as docs/deploy.md sets them up."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import json
import uuid
from collections.abc import Iterator
from typing import Any

import amqp.exceptions
import kombu
import pytest
import requests
import sqlalchemy as sa

from common import clock, context, rpc
from common.clients import credentials
from common.errors import Forbidden, Unavailable
from common.messages.facts import Heartbeat
from common.messages.reports import Report
from common.messages.tenures import Claim, unit, worker_of
from common.messages.topics import COMPUTE_TOPIC, CONDUCTOR_EVENTS_TOPIC, CONDUCTOR_TOPIC
from common.resources.states import ResourceType
from common.rpc import events, rabbit, senders
from common.rpc.events import ConductorEvents
from compute.client import ComputeClient
from db import schema
from launcher import configuration
from launcher.embedded.settings import Sections, render
from placement.client import PlacementClient
from tests.functional.cloud import eventually
from tests.functional.distributed import NODES, DistributedCloud, distributed_cloud

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(2400)]

WAIT_SECONDS = 120
AGENT, OTHER = (f"agent-{node}" for node in NODES[:2])
REFUSED = (amqp.exceptions.AccessRefused, amqp.exceptions.PreconditionFailed)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DistributedCloud]:
    """One cloud for all tests here."""
    with distributed_cloud(tmp_path_factory.mktemp("privilege")) as running:
        yield running


def bus_of(cloud: DistributedCloud, process: str) -> Any:
    """The configuration of a process."""
    name = "-metrics" if process in cloud.ports else ""
    files = [cloud.folder / "micronova.conf", cloud.folder / f"{process}{name}.conf"]
    return configuration.load([str(path) for path in files])


@contextlib.contextmanager
def channel(cloud: DistributedCloud, process: str) -> Iterator[Any]:
    """A connection to the broker as that process's user; any error may close it."""
    url = str(bus_of(cloud, process).transport_url).replace("rabbit://", "amqp://")
    connection = kombu.Connection(url, transport_options={"confirm_publish": True})
    with contextlib.closing(connection) as opened:
        yield opened.channel()


def refused(cloud: DistributedCloud, process: str, act: Any) -> bool:
    """Whether the broker refuses something."""
    with channel(cloud, process) as opened:
        try:
            act(opened)
        except REFUSED:
            return True
    return False


def publish(exchange: str, key: str, **properties: Any) -> Any:
    """Return what publishes a message."""
    message = amqp.Message("{}", **properties)
    return lambda opened: opened.basic_publish_confirm(message, exchange=exchange, routing_key=key)


AGENT_PROCESS = f"compute-{NODES[0]}"


def test_the_services_work_with_users_of_their_own(cloud: DistributedCloud) -> None:
    client = cloud.connection()
    compute = client.compute
    server = compute.create_server(
        name="web",
        flavor_id=compute.find_flavor("m1.nano", ignore_missing=False).id,
        image_id=client.image.find_image("cirros", ignore_missing=False).id,
        networks=[{"uuid": client.network.find_network("vmbr0", ignore_missing=False).id}],
    )
    compute.wait_for_server(server, wait=WAIT_SECONDS)
    body = {"volume": {"size": 1}, "OS-SCH-HNT:scheduler_hints": {"local_to_instance": server.id}}
    made = client.block_storage.request("/volumes", "POST", json=body).json()["volume"]["id"]
    eventually(lambda: client.block_storage.get_volume(made).status == "available", WAIT_SECONDS)
    compute.create_volume_attachment(server, volume=made)
    eventually(lambda: client.block_storage.get_volume(made).status == "in-use", WAIT_SECONDS)
    compute.delete_volume_attachment(server, made)
    eventually(lambda: client.block_storage.get_volume(made).status == "available", WAIT_SECONDS)
    compute.resize_server(server, compute.find_flavor("m1.tiny", ignore_missing=False).id)
    compute.wait_for_server(server, "VERIFY_RESIZE", wait=WAIT_SECONDS)
    compute.confirm_server_resize(server)
    compute.wait_for_server(server, wait=WAIT_SECONDS)
    client.block_storage.delete_volume(made)
    compute.delete_server(server)
    compute.wait_for_delete(server, wait=WAIT_SECONDS)
    for name, child in cloud.children.items():
        text = child.log_path.read_text(errors="replace")
        assert "ACCESS_REFUSED" not in text, (name, text[-3000:])
        assert "names no sender" not in text, name
    events = [json.loads(line) for line in (cloud.folder / "audit.log").read_text().splitlines()]
    done = {event["action"] for event in events if event["target"]["id"] == server.id}
    assert {"create", "read", "update/resize", "update/confirmResize", "delete"} <= done
    [made] = [
        event
        for event in events
        if event["action"] == "create"
        and event["target"]["typeURI"] == "service/compute/servers"
        and event["target"]["id"] == server.id
    ]
    assert made["initiator"]["name"] == "demo"
    assert made["initiator"]["host"]["address"] == "127.0.0.1"
    assert client.auth_token not in (cloud.folder / "audit.log").read_text()


def test_a_refused_login_is_an_event(cloud: DistributedCloud) -> None:
    url = f"http://127.0.0.1:{cloud.ports['compute']}/volume/v3/volumes"
    agent = f"test/{uuid.uuid4().hex}"
    headers = {"X-Auth-Token": "gAAAAA-stolen", "X-User-Name": "admin", "User-Agent": agent}
    assert requests.get(url, headers=headers, timeout=60).status_code == 401
    text = (cloud.folder / "audit.log").read_text()
    [event] = [json.loads(line) for line in text.splitlines() if agent in line]
    assert (event["outcome"], event["initiator"]["name"]) == ("failure", "unknown")
    assert "stolen" not in text


@pytest.mark.parametrize(
    "queue",
    [
        f"{COMPUTE_TOPIC}.{OTHER}",
        f"compute_announce.{OTHER}",
        *("conductor", "conductor.conductor-1", "conductor_events", "scheduler", "host_facts"),
        *("scheduler_fanout_" + uuid.uuid4().hex, "any", "alive.nova-conductor"),
        rabbit.reply_prefix(senders.user_of("conductor")) + uuid.uuid4().hex,
        rabbit.reply_prefix(senders.user_of("compute", OTHER)) + uuid.uuid4().hex,
    ],
)
def test_an_agent_reads_no_queue_of_another_service(cloud: DistributedCloud, queue: str) -> None:
    def declare(opened: Any) -> None:
        opened.queue_declare(queue, durable=True, auto_delete=False)

    assert refused(cloud, AGENT_PROCESS, declare)
    with channel(cloud, AGENT_PROCESS) as opened:
        with pytest.raises((*REFUSED, amqp.exceptions.NotFound)):
            opened.basic_consume(queue)


@pytest.mark.parametrize(
    ("process", "key", "allowed"),
    [
        (AGENT_PROCESS, CONDUCTOR_EVENTS_TOPIC, True),
        (AGENT_PROCESS, f"{COMPUTE_TOPIC}.{AGENT}", True),
        (AGENT_PROCESS, CONDUCTOR_TOPIC, False),
        (AGENT_PROCESS, "conductor.conductor-1", False),
        (AGENT_PROCESS, "conductor_events.conductor-1", False),
        (AGENT_PROCESS, f"{COMPUTE_TOPIC}.{OTHER}", False),
        (AGENT_PROCESS, f"{COMPUTE_TOPIC}.{AGENT}.", False),
        (AGENT_PROCESS, "scheduler", False),
        ("compute", CONDUCTOR_TOPIC, True),
        ("compute", "scheduler", False),
        ("compute", f"{COMPUTE_TOPIC}.{AGENT}", False),
        ("scheduler-1", f"{COMPUTE_TOPIC}.{AGENT}", False),
        ("scheduler-1", CONDUCTOR_TOPIC, False),
        ("conductor-1", f"{COMPUTE_TOPIC}.{AGENT}", True),
    ],
)
def test_a_service_sends_to_the_topics_that_it_needs(
    cloud: DistributedCloud, process: str, key: str, *, allowed: bool
) -> None:
    # A message that isn't one is logged and dropped by who gets it; to itself an agent's tick.
    if allowed:
        key = f"{key}.nobody" if process == "conductor-1" else key
    with channel(cloud, process) as opened:
        act = publish("openstack", key, user_id=opened.connection.client.userid)
        if allowed:
            act(opened)
        else:
            with pytest.raises(amqp.exceptions.AccessRefused):
                act(opened)


@pytest.mark.parametrize("exchange", ["", "scheduler_fanout", "compute_announce_fanout"])
def test_an_agent_reaches_no_queue_by_another_exchange(
    cloud: DistributedCloud, exchange: str
) -> None:
    assert refused(cloud, AGENT_PROCESS, publish(exchange, CONDUCTOR_TOPIC))


def test_an_agent_answers_to_reply_queues_only(cloud: DistributedCloud) -> None:
    reply = rabbit.reply_prefix(senders.user_of("conductor")) + uuid.uuid4().hex
    assert not refused(cloud, AGENT_PROCESS, publish(rabbit.REPLIES, reply))
    assert refused(cloud, AGENT_PROCESS, publish(rabbit.REPLIES, CONDUCTOR_TOPIC))


@pytest.mark.parametrize("key", [f"{COMPUTE_TOPIC}.{OTHER}", "conductor", "#", "compute.*"])
def test_an_agent_gets_no_copy_of_what_others_are_sent(cloud: DistributedCloud, key: str) -> None:
    def bind(opened: Any) -> None:
        opened.queue_bind(f"{COMPUTE_TOPIC}.{AGENT}", "openstack", key)

    assert refused(cloud, AGENT_PROCESS, bind)


def test_a_message_names_its_sender_truly(cloud: DistributedCloud) -> None:
    forged = publish("openstack", CONDUCTOR_EVENTS_TOPIC, user_id=senders.user_of("conductor"))
    assert refused(cloud, AGENT_PROCESS, forged)


@pytest.fixture
def agent(cloud: DistributedCloud) -> Iterator[Any]:
    """The bus, as a program that has an agent's password sees it."""
    transport = rpc.transport(bus_of(cloud, AGENT_PROCESS))
    yield transport
    transport.cleanup()


def services(cloud: DistributedCloud, binary: str = "nova-conductor") -> dict[str, str]:
    """{host: its worker in the record}, of a kind of service."""
    engine = sa.create_engine(cloud.postgres.url("micronova"))
    query = sa.select(schema.services.c.host, schema.services.c.worker)
    with contextlib.closing(engine.connect()) as connection:
        found = connection.execute(query.where(schema.services.c.binary == binary)).all()
    engine.dispose()
    return {row.host: worker_of(row.worker) for row in found}


def logs(cloud: DistributedCloud) -> str:
    """What conductors have logged."""
    files = [cloud.children[name].log_path for name in ("conductor-1", "conductor-2")]
    return "".join(path.read_text(errors="replace") for path in files)


def logged(cloud: DistributedCloud, text: str) -> bool:
    return text in logs(cloud)


def test_an_agent_reports_for_itself_only(cloud: DistributedCloud, agent: Any) -> None:
    before = services(cloud, "nova-compute")
    hosts = {worker: host for host, worker in before.items()}
    mine = senders.user_of("compute", AGENT)
    conductor = events.to_conductor(agent)
    ctxt = context.internal()

    def beat(worker: str, host: str) -> None:
        sent = Heartbeat(worker, clock.utcnow(), (host,))
        conductor.cast(ctxt, ConductorEvents.heartbeat, heartbeat=sent)

    beat(OTHER, hosts[OTHER])
    eventually(lambda: logged(cloud, f"{mine} may not report for worker {OTHER}"), WAIT_SECONDS)
    beat(AGENT, hosts[OTHER])
    eventually(lambda: logged(cloud, f"{mine} may not report on {hosts[OTHER]}"), WAIT_SECONDS)
    about = (1, 1, ResourceType.SERVER, str(uuid.uuid4()))
    reports = [Report(*about, hosts[AGENT], worker=f"{OTHER}@1")]
    conductor.cast(ctxt, ConductorEvents.report, reports=reports)
    eventually(lambda: logged(cloud, f"may not report for worker {OTHER}@1"), WAIT_SECONDS)
    claim = Claim(OTHER, "process", "machine", 1, (unit("sim1"),))
    with pytest.raises(Forbidden):
        conductor.call(ctxt, ConductorEvents.claim_agents, claim=claim)
    with pytest.raises(Forbidden):
        conductor.call(ctxt, ConductorEvents.may_start, worker=f"{OTHER}@1", working=[])
    conductor.cast(ctxt, ConductorEvents.release_agents, worker=f"{OTHER}@2")
    eventually(lambda: logged(cloud, f"may not report for worker {OTHER}@2"), WAIT_SECONDS)
    reports = [Report(*about, "elsewhere", worker=AGENT)]
    conductor.cast(ctxt, ConductorEvents.report, reports=reports)
    eventually(lambda: logged(cloud, f"{mine} may not report on elsewhere"), WAIT_SECONDS)
    conductor.cast(ctxt, ConductorEvents.alive, binary="nova-conductor", host="conductor-1")
    eventually(lambda: logged(cloud, f"{mine} may not ask for alive"), WAIT_SECONDS)
    assert services(cloud, "nova-compute") == before


@pytest.mark.parametrize("claimed", [{}, {"_context_sender": senders.user_of("conductor")}])
def test_a_message_without_a_sender_is_refused(
    cloud: DistributedCloud, claimed: dict[str, str]
) -> None:
    arguments = {"binary": "nova-conductor", "host": f"forged-{len(claimed)}"}
    inner = {
        "method": "alive",
        "args": arguments,
        "version": "1.0",
        "_unique_id": uuid.uuid4().hex,
    }
    text = json.dumps({"oslo.version": "2.0", "oslo.message": json.dumps(inner | claimed)})
    message = amqp.Message(text, content_type="application/json", content_encoding="utf-8")
    with channel(cloud, AGENT_PROCESS) as opened:
        opened.basic_publish_confirm(
            message, exchange="openstack", routing_key=CONDUCTOR_EVENTS_TOPIC
        )
    eventually(
        lambda: logs(cloud).count("A message that names no sender asks for alive") > len(claimed),
        WAIT_SECONDS,
    )
    assert arguments["host"] not in services(cloud)


def test_an_agent_commands_nobody(cloud: DistributedCloud, agent: Any) -> None:
    with pytest.raises(Unavailable):
        ComputeClient(agent).introduce(context.internal(), OTHER)


@contextlib.contextmanager
def configured(cloud: DistributedCloud, process: str, sections: Sections) -> Iterator[None]:
    """Have a process of the APIs read further options."""
    file = cloud.folder / f"{process}-metrics.conf"
    before = file.read_text()
    file.write_text(before + render(sections))
    try:
        cloud.restart(process)
        yield
    finally:
        file.write_text(before)
        cloud.restart(process)


CLIENTS, BURST = 8, 24


def test_workers_share_the_limits_of_who_asks(cloud: DistributedCloud) -> None:
    limits = {"rate_limits": {"user": f"compute:0.001/{BURST}"}}
    token = cloud.connection().auth_token
    admin = cloud.connection("micronova-admin").auth_token
    url = f"http://127.0.0.1:{cloud.ports['compute']}/compute/v2.1/flavors"

    def ask(number: int) -> int:
        headers = {"X-Auth-Token": token, "X-Forwarded-For": f"192.0.2.{number}"}
        return requests.get(url, headers=headers, timeout=60).status_code

    with configured(cloud, "compute", limits):
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            codes = list(pool.map(ask, range(BURST * 4)))
        assert collections.Counter(codes) == {200: BURST, 429: BURST * 3}
        answer = requests.get(url, headers={"X-Auth-Token": token}, timeout=60)
        assert int(answer.headers["Retry-After"]) > 0
        answer = requests.get(url, headers={"X-Auth-Token": admin}, timeout=60)
        assert answer.status_code == 200


@pytest.mark.parametrize(
    ("process", "group", "option"),
    [("conductor", "database", "connection"), ("placement", "placement_database", "connection")],
)
def test_a_service_changes_no_table(
    cloud: DistributedCloud, process: str, group: str, option: str
) -> None:
    conf = configuration.load([str(cloud.folder / f"{process}.conf")])
    engine = sa.create_engine(conf[group][option])
    try:
        for statement in ("CREATE TABLE mine (id int)", "DROP TABLE alembic_version"):
            with (
                pytest.raises(sa.exc.ProgrammingError, match=r"permission denied|must be owner"),
                engine.begin() as connection,
            ):
                connection.exec_driver_sql(statement)
    finally:
        engine.dispose()


def placement_of(cloud: DistributedCloud, process: str) -> PlacementClient:
    """Placement, as a process reaches it."""
    conf = bus_of(cloud, process)
    return PlacementClient(credentials.adapter(conf, "placement"))


def test_an_agent_writes_placement_for_its_hosts_only(cloud: DistributedCloud) -> None:
    placement = placement_of(cloud, AGENT_PROCESS)
    uuids = {one.name: one.uuid for one in placement.providers()}
    assert set(uuids) == set(NODES)
    mine, other = (placement.inventories(uuids[node]) for node in NODES[:2])
    kept = {name: {**one, "reserved": 0} for name, one in mine.items()}
    placement.set_inventory(uuids[NODES[0]], kept)
    placement.set_inventory(uuids[NODES[0]], mine)
    with pytest.raises(Forbidden):
        placement.set_inventory(uuids[NODES[1]], {"VCPU": {"total": 1000}})
    with pytest.raises(Forbidden):
        placement.add_trait(uuids[NODES[1]], "COMPUTE_STATUS_DISABLED")
    with pytest.raises(Forbidden):
        placement.delete_provider(uuids[NODES[1]])
    with pytest.raises(Forbidden):
        placement.ensure_provider(str(uuid.uuid4()), "pve9")
    with pytest.raises(Forbidden):
        placement.release(str(uuid.uuid4()))
    with pytest.raises(Forbidden):
        placement.replace(str(uuid.uuid4()), {uuids[NODES[0]]: {"VCPU": 1}}, "p", "u", None)
    assert placement.inventories(uuids[NODES[1]]) == other


@pytest.mark.parametrize("process", ["compute", "placement"])
def test_who_checks_tokens_changes_nothing(cloud: DistributedCloud, process: str) -> None:
    placement = placement_of(cloud, process)
    with pytest.raises(Forbidden):
        placement.release(str(uuid.uuid4()))
    with pytest.raises(Forbidden):
        placement.providers()


def test_a_project_that_is_not_there_has_no_quota(cloud: DistributedCloud) -> None:
    admin = cloud.connection("micronova-admin")
    answer = admin.compute.put(
        f"/os-quota-sets/{uuid.uuid4().hex}", json={"quota_set": {"cores": 1}}
    )
    assert answer.status_code == 400, answer.text
