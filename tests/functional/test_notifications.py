"""Notifications on a real RabbitMQ, received by oslo.messaging's own listener."""

from __future__ import annotations

import functools
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import oslo_messaging
import pytest
from oslo_config import cfg

from common import config, rpc
from common.errors import ConfigurationError
from conductor.notifications.config import enabled
from launcher import configuration
from tests.fixtures.auth import ADMIN
from tests.fixtures.notifications import UNVERSIONED, differences
from tests.functional import brokers
from tests.functional.cloud import eventually
from tests.functional.test_costs import SCANS, Cloud, image_id, look, read_state

TOPICS = ("versioned_notifications", "notifications")


class Consumer:
    """A service that listens to notifications, with queues of its own kind."""

    def __init__(self, url: str, **rabbit: bool) -> None:
        conf = config.load([rpc.register])
        for name, value in rabbit.items():
            conf.set_override(name, value, group="oslo_messaging_rabbit")
        transport = oslo_messaging.get_notification_transport(conf, url)
        targets = [oslo_messaging.Target(exchange="nova", topic=topic) for topic in TOPICS]
        self.received: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = []
        """Event type, payload and metadata of each, in order."""
        self._news = threading.Condition()
        self._listener = oslo_messaging.get_notification_listener(
            transport, targets, [self], executor="threading"
        )

    def __enter__(self) -> Consumer:
        # One at a time, so that their order is that of the bus.
        self._listener.start(override_pool_size=1)
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.stop()
        self._listener.wait()

    def info(self, ctxt: Any, publisher: str, event: str, payload: Any, metadata: Any) -> None:
        """Take what oslo.messaging calls endpoints with."""
        self._take("INFO", ctxt, publisher, event, payload, metadata)

    def error(self, ctxt: Any, publisher: str, event: str, payload: Any, metadata: Any) -> None:
        """Take an error."""
        self._take("ERROR", ctxt, publisher, event, payload, metadata)

    def _take(
        self, priority: str, ctxt: Any, publisher: str, event: str, payload: Any, metadata: Any
    ) -> None:
        with self._news:
            more = {**metadata, "priority": priority, "publisher": publisher, "context": ctxt}
            self.received.append((event, payload, more))
            self._news.notify_all()

    def wait_for(self, *events: str) -> None:
        """Wait until each was received."""
        missing = functools.partial(lambda: set(events) - set(self.names()))
        with self._news:
            assert self._news.wait_for(lambda: not missing(), 30), (missing(), self.names())

    def names(self, prefix: str = "") -> list[str]:
        return [event for event, _, _ in self.received if event.startswith(prefix)]

    def last(self, event: str) -> Any:
        return [payload for name, payload, _ in self.received if name == event][-1]


@pytest.fixture(scope="module")
def broker() -> Iterator[brokers.Broker]:
    with brokers.broker() as running:
        yield running


def options(url: str, **more: Any) -> Sequence[tuple[str, str, Any]]:
    """The options that have a conductor send to this bus."""
    return (
        *SCANS,
        ("oslo_messaging_notifications", "driver", ["messagingv2"]),
        ("oslo_messaging_notifications", "transport_url", url),
        *(
            ("notifications", name, value)
            for name, value in {"notification_format": "both", **more}.items()
        ),
    )


@pytest.fixture
def consumer(broker: brokers.Broker) -> Iterator[Consumer]:
    with Consumer(broker.url) as listening:
        yield listening


@pytest.fixture
def cloud(tmp_path: Path, broker: brokers.Broker, consumer: Consumer) -> Iterator[Cloud]:
    audits = {"instance_usage_audit": True, "instance_usage_audit_period": "year"}
    more = options(
        broker.url,
        bdms_in_notifications=True,
        notify_on_state_change="vm_and_task_state",
        **audits,
    )
    made = Cloud(tmp_path, options=[*more, ("networks", "subnets", ["vmbr0=10.9.0.0/24"])])
    made.start()
    try:
        eventually(made.ready)
        yield made
    finally:
        made.stop()


def acted(cloud: Cloud, folder: Path, uuid: str, body: Any, vm_state: str) -> None:
    """Have an administrator do it, and wait for the state."""
    cloud.call("POST", f"/v2.1/servers/{uuid}/action", ADMIN, json=body)
    task = f"SELECT task_state FROM servers WHERE uuid = '{uuid}'"
    eventually(lambda: (read_state(folder, uuid), look(folder, task)) == (vm_state, None))


def test_what_servers_go_through_is_notified(
    cloud: Cloud, consumer: Consumer, tmp_path: Path
) -> None:
    image = image_id(tmp_path)
    network = look(tmp_path, "SELECT id FROM networks WHERE bridge = 'vmbr0'")
    flavor = {"flavor": {"name": "m1.more", "vcpus": 2, "ram": 512, "disk": 1, "id": "2"}}
    cloud.call("POST", "/v2.1/flavors", ADMIN, json=flavor)
    body = {"name": "s", "flavorRef": "1", "imageRef": image, "networks": [{"uuid": network}]}
    uuid = cloud.call("POST", "/v2.1/servers", json={"server": body})["server"]["id"]
    eventually(lambda: read_state(tmp_path, uuid) == "active")
    act = functools.partial(acted, cloud, tmp_path, uuid)

    hints = {"OS-SCH-HNT:scheduler_hints": {"local_to_instance": uuid}}
    volume = cloud.call("POST", "/v3/volumes", json={"volume": {"size": 1}} | hints)["volume"][
        "id"
    ]
    status = f"SELECT status FROM volumes WHERE id = '{volume}'"
    eventually(lambda: look(tmp_path, status) == "available")
    attached = f"/v2.1/servers/{uuid}/os-volume_attachments"
    cloud.call("POST", attached, json={"volumeAttachment": {"volumeId": volume}})
    eventually(lambda: look(tmp_path, status) == "in-use")
    cloud.call("DELETE", f"{attached}/{volume}")
    eventually(lambda: look(tmp_path, status) == "available")

    interfaces = f"/v2.1/servers/{uuid}/os-interface"
    wish = {"interfaceAttachment": {"net_id": network}}
    port = cloud.call("POST", interfaces, json=wish)["interfaceAttachment"]["port_id"]
    cloud.call("DELETE", f"{interfaces}/{port}")
    consumer.wait_for("instance.interface_detach.end")

    act({"lock": {"locked_reason": "mine"}}, "active")
    act({"unlock": None}, "active")
    act({"reboot": {"type": "HARD"}}, "active")
    act({"os-stop": None}, "stopped")
    act({"os-start": None}, "active")
    act({"pause": None}, "paused")
    act({"unpause": None}, "active")
    act({"suspend": None}, "suspended")
    act({"resume": None}, "active")
    act({"resize": {"flavorRef": "2"}}, "resized")
    act({"revertResize": None}, "active")
    act({"resize": {"flavorRef": "2"}}, "resized")
    act({"confirmResize": None}, "active")
    act({"rebuild": {"imageRef": image}}, "active")
    act({"rescue": {}}, "rescued")
    act({"unrescue": None}, "active")
    act({"shelve": None}, "shelved_offloaded")
    act({"unshelve": None}, "active")
    act({"os-migrateLive": {"host": None, "block_migration": "auto"}}, "active")
    act({"createImage": {"name": "picture"}}, "active")
    tags = {"tags": ["red"]}
    cloud.call("PUT", f"/v2.1/servers/{uuid}/tags", json=tags)
    consumer.wait_for("instance.snapshot.end", "compute.instance.snapshot.end")
    cloud.call("DELETE", f"/v2.1/servers/{uuid}")
    consumer.wait_for("instance.delete.end", "compute.instance.delete.end")
    others = others_are_changed(cloud)
    consumer.wait_for(*others)

    assert without_updates(consumer.names("instance.")) == [
        f"instance.{name}"
        for name in (
            *("create.start", "create.end"),
            *both("volume_attach", "volume_detach", "interface_attach", "interface_detach"),
            *("lock", "unlock"),
            *both("reboot", "power_off", "power_on", "pause", "unpause", "suspend", "resume"),
            *("exists", *both("resize_prep", "resize", "resize_finish")),
            *("exists", *both("resize_revert")),
            *("exists", *both("resize_prep", "resize", "resize_finish", "resize_confirm")),
            *("rebuild_scheduled", "exists", *both("rebuild")),
            *("exists", *both("rescue", "unrescue")),
            *("exists", *both("shelve", "shelve_offload", "unshelve")),
            *both("live_migration_pre", "live_migration_post", "live_migration_post_dest"),
            *both("snapshot"),
            *("delete.start", "shutdown.start", "shutdown.end", "delete.end"),
        )
    ]
    services, rest = [], []
    for name in consumer.names():
        if "instance." not in name:
            (services if name == "service.create" else rest).append(name)
    assert rest == others
    assert len(services) == int(look(tmp_path, "SELECT count(*) FROM services"))
    for event, payload, metadata in consumer.received:
        if event.startswith("compute."):
            assert event in UNVERSIONED
        else:
            assert differences(event, metadata["priority"], payload) == []
    data = consumer.last("instance.volume_attach.end")["nova_object.data"]
    assert data["volume_id"] == volume
    assert consumer.last("instance.snapshot.end")["nova_object.data"]["snapshot_image_id"]
    end = consumer.last("instance.create.end")["nova_object.data"]
    [address] = end["ip_addresses"]
    assert address["nova_object.data"]["address"].startswith("10.9.0.")
    older = consumer.last("compute.instance.create.end")
    assert older["fixed_ips"][0]["address"] == address["nova_object.data"]["address"]
    [prep, *_] = [
        one for name, one, _ in consumer.received if name == "instance.resize_prep.start"
    ]
    new = prep["nova_object.data"]["new_flavor"]["nova_object.data"]
    assert (new["name"], new["vcpus"]) == ("m1.more", 2)
    update = consumer.last("instance.update")["nova_object.data"]
    assert update["state_update"]["nova_object.data"]["state"] == "deleted"
    eventually(lambda: look(tmp_path, "SELECT count(*) FROM notification_outbox") == 0)
    # There is nothing to report of the last year, so that is done.
    log = cloud.call("GET", "/v2.1/os-instance_usage_audit_log", ADMIN)
    assert log["instance_usage_audit_logs"]["overall_status"] == "ALL hosts done. 0 errors."
    assert log["instance_usage_audit_logs"]["num_hosts_done"] >= 1


def others_are_changed(cloud: Cloud) -> list[str]:
    """Change what is no server; return the events that are sent, in order."""
    call = functools.partial(cloud.call, token=ADMIN)
    call("POST", "/v2.1/flavors/2/os-extra_specs", json={"extra_specs": {"a": "b"}})
    call("DELETE", "/v2.1/flavors/2")
    call("POST", "/v2.1/os-keypairs", json={"keypair": {"name": "k", "type": "ssh"} | KEY})
    call("DELETE", "/v2.1/os-keypairs/k")
    group = {"server_group": {"name": "g", "policy": "anti-affinity"}}
    uuid = call("POST", "/v2.1/os-server-groups", json=group)["server_group"]["id"]
    call("DELETE", f"/v2.1/os-server-groups/{uuid}")
    new = {"aggregate": {"name": "a", "availability_zone": None}}
    number = call("POST", "/v2.1/os-aggregates", json=new)["aggregate"]["id"]
    of_aggregate = f"/v2.1/os-aggregates/{number}"
    service = call("GET", "/v2.1/os-services?binary=nova-compute")["services"][0]
    for action in ("add_host", "remove_host"):
        call("POST", f"{of_aggregate}/action", json={action: {"host": service["host"]}})
    call("PUT", of_aggregate, json={"aggregate": {"name": "b"}})
    wish = {"set_metadata": {"metadata": {"c": "d"}}}
    call("POST", f"{of_aggregate}/action", json=wish)
    call("DELETE", of_aggregate)
    call("PUT", f"/v2.1/os-services/{service['id']}", json={"forced_down": True})
    return [
        *("flavor.create", "flavor.update", "flavor.delete"),
        *both("keypair.import", "keypair.delete"),
        *("server_group.create", "server_group.delete"),
        *both("aggregate.create", "aggregate.add_host", "aggregate.remove_host"),
        *both("aggregate.update_prop", "aggregate.update_metadata", "aggregate.delete"),
        "service.update",
    ]


KEY = {"public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ" + "A" * 42 + " k"}


def both(*parts: str) -> list[str]:
    return [f"{part}.{phase}" for part in parts for phase in ("start", "end")]


def without_updates(names: Sequence[str]) -> list[str]:
    return [name for name in names if name != "instance.update"]


_KILLED = """
import os, signal, sys
from pathlib import Path
import db.migrate
from tests.fixtures import databases
from tests.functional.conductor.harness import World
from tests.functional.conductor.notification_bus import Bus, send_notifications

databases.create = db.migrate.upgrade
world = World(Path(sys.argv[1]))
sender = send_notifications(world.conductor, Bus())
world.conductor.store.recorders[0]._wake = lambda: os.kill(os.getpid(), signal.SIGKILL)
world.create()
"""


def test_what_a_killed_conductor_has_committed_is_sent_by_the_next_one(
    tmp_path: Path, broker: brokers.Broker, consumer: Consumer
) -> None:
    """It is killed between the commit and whatever would have it sent."""
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    uuid = look(tmp_path, "SELECT server_uuid FROM notification_outbox")
    made = Cloud(tmp_path, options=options(broker.url, notification_format="versioned"))
    made.start()
    try:
        consumer.wait_for("instance.create.start")
    finally:
        made.stop()
    assert consumer.last("instance.create.start")["nova_object.data"]["uuid"] == uuid


@pytest.mark.long
def test_while_the_bus_is_away_servers_are_made_and_notified_later(
    tmp_path: Path, broker: brokers.Broker
) -> None:
    """Of a consumer with oslo.messaging's own defaults, for which queue_type is set."""
    _delete_queues(broker)
    made = Cloud(tmp_path, options=options(broker.url, queue_type="durable"))
    made.start()
    try:
        eventually(made.ready)
        body = {"name": "s", "flavorRef": "1", "imageRef": image_id(tmp_path), "networks": "none"}
        broker.stop()
        uuid = made.call("POST", "/v2.1/servers", json={"server": body})["server"]["id"]
        eventually(lambda: read_state(tmp_path, uuid) == "active")
        kept = "SELECT count(*) FROM notification_outbox WHERE event LIKE 'instance.%'"
        assert look(tmp_path, kept) == 2
        broker.start()
        durable = {"rabbit_quorum_queue": False, "amqp_durable_queues": True}
        with Consumer(broker.url, **durable) as listening:
            listening.wait_for("instance.create.end", "compute.instance.create.end")
        assert listening.names("instance.") == ["instance.create.start", "instance.create.end"]
    finally:
        made.stop()


def _delete_queues(broker: brokers.Broker) -> None:
    """Delete the queues of other tests, which are of another type."""
    import kombu

    with kombu.Connection(broker.url.replace("rabbit://", "amqp://", 1)) as connection:
        channel = connection.channel()
        for topic in TOPICS:
            for priority in ("info", "error", "warn", "critical", "debug", "audit", "sample"):
                channel.queue_delete(f"{topic}.{priority}")
        channel.exchange_delete("nova")


@pytest.mark.parametrize(
    ("driver", "url", "said"),
    [
        (["messagingv2"], "", "message bus has no listeners outside of it"),
        (["log"], "rabbit://x", "log is not supported"),
        (["messaging", "messagingv2"], "rabbit://x", "name one"),
    ],
)
def test_what_can_t_be_served_is_refused_in_a_sentence(
    driver: list[str], url: str, said: str
) -> None:
    conf = _conf(driver, url)
    with pytest.raises(ConfigurationError, match=said):
        enabled(conf)


def test_nothing_is_sent_by_default() -> None:
    assert not enabled(_conf([], ""))
    assert not enabled(_conf(["noop"], ""))


def _conf(driver: list[str], url: str) -> cfg.ConfigOpts:
    conf = config.load(configuration.registers("conductor"))
    conf.set_override("transport_url", "micronova-local://embedded")
    conf.set_override("driver", driver, group="oslo_messaging_notifications")
    conf.set_override("transport_url", url or None, group="oslo_messaging_notifications")
    return conf
