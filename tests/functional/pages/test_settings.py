"""The settings that pages print, each on the cloud that is started with them, by its effect."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.functional import brokers
from tests.functional.pages.prepared import SECOND, SETTINGS, TRACE
from tests.functional.pages.reading import SECONDS, Reading, lines
from tests.functional.pages.site import Site
from tests.functional.pages.test_commands import settled
from tests.functional.test_notifications import Consumer
from tests.functional.test_tracing import Collector
from tests.functional.waiting import eventually


@pytest.fixture(scope="module")
def broker() -> Iterator[brokers.Broker]:
    with brokers.broker() as running:
        yield running


@pytest.fixture(scope="module")
def consumer(broker: brokers.Broker) -> Iterator[Consumer]:
    with Consumer(broker.url) as listening:
        yield listening


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector() as running:
        yield running


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory,
    broker: brokers.Broker,
    consumer: Consumer,
    collector: Collector,
) -> Iterator[Site]:
    """A cloud on a cluster, all made by what pages print."""
    folder = tmp_path_factory.mktemp("printed")
    made = Site(folder, broker=broker.url, collector=collector.url)
    with made.cluster():
        made.prepare()
        with made.running():
            yield made
    made.desk.close()


def carry_out(site: Site, reading: Reading, commands: Iterable[str]) -> None:
    environment = site.cloud.environment(reading.who)
    administrator = site.cloud.connection("micronova")
    for command in commands:
        site.desk.run(site.filled(command), environment, reading.typed)
        eventually(lambda: settled(administrator), SECONDS)


@pytest.mark.parametrize("reading", SETTINGS, ids=str)
def test_what_is_set_has_its_effect(site: Site, reading: Reading) -> None:
    carry_out(site, reading, [*lines(reading.before), *lines(reading.after)])


@pytest.mark.parametrize("reading", SECOND, ids=str)
def test_the_commands_of_a_page(site: Site, reading: Reading) -> None:
    carry_out(site, reading, reading.commands())


# --- what a server's life leaves in logs, traces and notifications


@pytest.fixture(scope="module")
def lived(site: Site) -> Iterator[str]:
    """A server that was created; its ID."""
    user = site.cloud.connection()
    having = {"image": "cirros", "flavor": "m1.tiny", "network": "vmbr0", "auto_ip": False}
    # the first one has the image's template made
    servers = [user.create_server(name, wait=True, **having) for name in ("first", "lived")]
    yield str(servers[-1].id)
    for one in servers:
        user.delete_server(one.id, wait=True)


def test_the_logs_are_json(site: Site, lived: str) -> None:
    text = (site.cloud.state_dir / "log" / "cloud.log").read_text(encoding="utf-8")
    entries = [json.loads(line) for line in text.splitlines()]
    fields = {"message", "levelname", "name", "created", "traceback", "context"}
    assert all(fields <= set(entry) for entry in entries)
    of_requests = [entry["context"] for entry in entries if entry["context"].get("request_id")]
    assert {"global_request_id", "project_id", "user", "resource_id"} <= set(of_requests[-1])


def test_the_notifications_are_sent(consumer: Consumer, lived: str) -> None:
    consumer.wait_for("instance.create.end", "compute.instance.create.end")


_MILLISECONDS = re.compile(r" \d+ ms$")


def printed_paths(text: str) -> list[tuple[str, ...]]:
    """Return the names of each span of a printed trace, from the first one down."""
    found: list[tuple[str, ...]] = []
    above: list[str] = []
    for line in text.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        for name in _MILLISECONDS.sub("", line.strip()).split(", "):
            above[depth:] = [name]
            found.append(tuple(above))
    return found


def sent_paths(collector: Collector, server: str) -> list[tuple[str, ...]]:
    """Return the same of the trace of the server's create."""
    spans = collector.spans()
    [first] = [one for one in spans if one.name == "create server" and server in str(one)]
    trace = sorted(
        (one for one in spans if one.trace_id == first.trace_id),
        key=lambda one: (one.start_time_unix_nano, -one.end_time_unix_nano),
    )

    def paths(span: Any) -> Iterator[tuple[str, ...]]:
        yield (span.name,)
        for one in trace:
            if one.parent_span_id == span.span_id:
                yield from ((span.name, *path) for path in paths(one))

    return list(paths(first))


def test_a_trace_is_as_printed(collector: Collector, lived: str) -> None:
    eventually(lambda: [one for one in collector.spans("create server") if lived in str(one)])
    [text] = TRACE.texts()
    assert set(printed_paths(text)) == set(sent_paths(collector, lived))
