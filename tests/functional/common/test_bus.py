"""What a broker says of the servers that listen to it: how much they get ahead, what expires."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from common import config, rpc
from common.context import internal
from common.errors import Unavailable
from common.rpc import own_queues
from tests.chaos.proxy import Proxy
from tests.functional import brokers
from tests.functional.waiting import eventually

WORKERS = 5
OWN = 2
WAIT_SECONDS = 120


class Endpoint:
    """Nothing is asked of it."""


@pytest.fixture(scope="module")
def broker() -> Iterator[brokers.Broker]:
    with brokers.broker() as running:
        yield running


def listed(broker: brokers.Broker, what: str, *columns: str) -> list[dict[str, Any]]:
    """What `rabbitmqctl` lists."""
    printed = broker.control([what, "--quiet", "--formatter", "json", *columns])
    rows: list[dict[str, Any]] = json.loads(printed)
    return rows


@contextlib.contextmanager
def listening(
    broker: brokers.Broker, *lines: str, workers: int | None = None, name: str = "one"
) -> Iterator[str]:
    """A server of a topic of its own; gives the topic."""
    conf = config.load([rpc.register])
    conf.set_override("transport_url", broker.url)
    conf.set_override("rpc_workers", WORKERS, group="rpc")
    for line in lines:
        option, value = line.split("=")
        conf.set_override(option, int(value), group="oslo_messaging_rabbit")
    bus, topic = rpc.transport(conf), f"topic-{uuid.uuid4().hex}"
    server = rpc.Server(bus, topic, name, [Endpoint()], workers=workers)
    server.start()
    try:
        yield topic
    finally:
        server.stop()
        bus.cleanup()


def prefetched(broker: brokers.Broker, topic: str) -> list[int]:
    """How many messages each consumer of a topic gets ahead."""
    rows = listed(broker, "list_consumers", "queue_name", "prefetch_count")
    return [row["prefetch_count"] for row in rows if row["queue_name"].startswith(topic)]


@pytest.mark.parametrize(
    ("lines", "workers", "wanted"),
    [
        ((), None, WORKERS),
        ((), OWN, OWN),
        (("rabbit_qos_prefetch_count=3",), None, 3),
        (("rabbit_qos_prefetch_count=3",), OWN, OWN),
    ],
    ids=["its threads", "threads of its own", "fewer ahead", "fewer threads than ahead"],
)
def test_a_server_gets_no_more_ahead_than_it_has_threads(
    broker: brokers.Broker, lines: Sequence[str], workers: int | None, wanted: int
) -> None:
    with listening(broker, *lines, workers=workers) as topic:
        assert prefetched(broker, topic) == [wanted] * 3


def test_so_it_does_when_its_connection_was_cut(broker: brokers.Broker) -> None:
    with listening(broker, workers=OWN) as topic:
        broker.control(["close_all_connections", "cut"])
        eventually(lambda: prefetched(broker, topic) == [OWN] * 3, WAIT_SECONDS)


def test_a_silent_connection_is_noticed_after_two_times_15_seconds(
    broker: brokers.Broker,
) -> None:
    with listening(broker):
        timeouts = [row["timeout"] for row in listed(broker, "list_connections", "timeout")]
    assert timeouts
    assert set(timeouts) == {15}


def expiries(broker: brokers.Broker, topic: str) -> dict[str, int | None]:
    """After how many milliseconds each queue of a topic expires; None: never."""
    rows = listed(broker, "list_queues", "name", "arguments")
    found = {
        row["name"].removeprefix(topic): row["arguments"]
        for row in rows
        if row["name"].startswith(topic)
    }
    return {name: _argument(arguments, "x-expires") for name, arguments in found.items()}


def _argument(arguments: Any, name: str) -> int | None:
    pairs = (
        arguments.items()
        if isinstance(arguments, dict)
        else ((one[0], one[-1]) for one in arguments)
    )
    return next((value for key, value in pairs if key == name), None)


def test_only_queues_of_one_process_expire(broker: brokers.Broker) -> None:
    with listening(broker) as topic:
        found = expiries(broker, topic)
    [fanout] = [name for name in found if name.startswith("_fanout")]
    assert found == {"": None, ".one": 1_800_000, fanout: 1_800_000}


def test_the_queue_of_a_process_that_ended_expires(
    broker: brokers.Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_queues, "EXPIRE_SECONDS", 1)
    with listening(broker) as topic:
        assert expiries(broker, topic)[".one"] == 1000
    eventually(lambda: ".one" not in expiries(broker, topic), WAIT_SECONDS)
    assert "" in expiries(broker, topic), "others answer what waits in it"


#: answers in a process of its own, whose late replies concern nobody
ECHO = """
import sys, threading
from common import config, rpc
class Echo:
    def ping(self, ctxt):
        return "pong"
conf = config.load([rpc.register])
conf.set_override("transport_url", sys.argv[1])
# So that silence is noticed soon.
conf.set_override("heartbeat_timeout_threshold", 2, group="oslo_messaging_rabbit")
rpc.Server(rpc.transport(conf), "echo", "one", [Echo()]).start()
threading.Event().wait()
"""


def test_a_listener_leaves_a_broker_that_is_frozen(broker: brokers.Broker) -> None:
    """It came back to that one each time, of three, for as long as it was frozen."""
    doors = [Proxy(broker.port) for _ in range(3)]
    urls = [broker.url.replace(f":{broker.port}/", f":{one.port}") for one in doors]
    hosts = [url.removeprefix("rabbit://") for url in urls]
    conf = config.load([rpc.register])
    conf.set_override("transport_url", broker.url)
    bus = rpc.transport(conf)
    client = rpc.Client(bus, "echo")
    listener = subprocess.Popen([sys.executable, "-c", ECHO, f"rabbit://{','.join(hosts)}/"])

    def answers() -> bool:
        try:
            return client.call(internal(), "ping", timeout_seconds=1.0) == "pong"
        except Unavailable:
            return False

    try:
        eventually(answers, WAIT_SECONDS)
        for one in doors:
            one.freeze()
            eventually(answers, WAIT_SECONDS)
            one.thaw()
    finally:
        listener.kill()
        listener.wait()
        bus.cleanup()
        for one in doors:
            one.close()
