"""Traces of a whole cloud, received as OTLP over HTTP and decoded."""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from common import config
from common.errors import ConfigurationError
from common.process.child import ROOT
from conductor.store.transactions import Store
from conductor.tracing.tracer import Tracer
from launcher import configuration
from tests.fixtures.auth import MEMBER
from tests.functional.cloud import eventually
from tests.functional.test_costs import SCANS, Cloud, image_id, look, read_state

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Collector:
    """Takes traces, as OpenTelemetry's own collector does."""

    def __init__(self) -> None:
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(collector.status)
                self.send_header("Content-Type", "application/x-protobuf")
                self.end_headers()
                self.wfile.write(ExportTraceServiceResponse().SerializeToString())
                collector.take(self.path, body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.status = 200
        self.refused = 0
        self.paths: set[str] = set()
        self.resources: list[dict[str, str]] = []
        self._spans: list[Any] = []
        self._one = threading.Lock()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Collector:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, path: str, body: bytes) -> None:
        with self._one:
            if self.status != 200:
                self.refused += 1
                return
            self.paths.add(path)
            for one in ExportTraceServiceRequest.FromString(body).resource_spans:
                about = {each.key: each.value.string_value for each in one.resource.attributes}
                self.resources.append(about)
                self._spans += [span for scope in one.scope_spans for span in scope.spans]

    def spans(self, name: str = "") -> list[Any]:
        with self._one:
            return [span for span in self._spans if name in {"", span.name}]


def attributes(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as running:
        yield running


@pytest.fixture
def cloud(tmp_path: Path, collector: Collector) -> Iterator[Cloud]:
    made = Cloud(tmp_path, options=[*SCANS, ("tracing", "endpoint", collector.url)])
    made.start()
    try:
        eventually(made.ready)
        yield made
    finally:
        made.stop()


def create(cloud: Cloud, folder: Path, **headers: str) -> tuple[str, str]:
    """Create a server; return its UUID and the request ID."""
    image = image_id(folder)
    body = {"server": {"name": "s", "flavorRef": "1", "imageRef": image, "networks": "none"}}
    given = {"X-Auth-Token": MEMBER, "OpenStack-API-Version": "compute 2.90", **headers}
    answer = cloud.api.simulate_post("/v2.1/servers", headers=given, json=body)
    assert answer.status_code == 202, answer.text
    uuid = answer.json["server"]["id"]
    eventually(lambda: read_state(folder, uuid) == "active")
    return uuid, answer.headers["x-openstack-request-id"]


def test_the_life_of_a_server(cloud: Cloud, collector: Collector, tmp_path: Path) -> None:
    uuid, request_id = create(cloud, tmp_path)
    cloud.call("DELETE", f"/v2.1/servers/{uuid}")
    eventually(lambda: collector.spans("create server") and collector.spans("delete server"))
    assert collector.paths == {"/v1/traces"}
    assert collector.resources[0]["service.name"] == "micronova"
    [whole] = collector.spans("create server")
    trace = request_id.removeprefix("req-").replace("-", "")
    assert (whole.trace_id.hex(), whole.parent_span_id) == (trace, b"")
    assert whole.status.code == whole.status.STATUS_CODE_OK
    shown = attributes(whole)
    assert (shown["micronova.request_id"], shown["micronova.resource.id"]) == (request_id, uuid)
    ours = [span for span in collector.spans() if span.trace_id == whole.trace_id]
    by_id = {span.span_id: span for span in ours}
    assert len(by_id) == len(ours)
    stages = {"scheduling", "networking", "block_device_mapping", "spawning"}
    steps = {"api_request", "conductor_take_quota", "conductor_schedule", "compute_create_vm"}
    names = {span.name for span in ours}
    assert stages | steps <= names, names
    for span in ours:
        assert span.start_time_unix_nano <= span.end_time_unix_nano
        if span is not whole:
            parent = by_id[span.parent_span_id]
            assert parent.start_time_unix_nano <= span.start_time_unix_nano
    [made] = [span for span in ours if span.name == "compute_create_vm"]
    assert by_id[made.parent_span_id].name == "spawning"
    [attempt] = [event for event in whole.events if event.name == "attempt"]
    assert attributes(attempt) == {"micronova.attempt": 1}
    [deleted] = collector.spans("delete server")
    assert deleted.trace_id != whole.trace_id


def test_a_caller_s_trace_goes_on(cloud: Cloud, collector: Collector, tmp_path: Path) -> None:
    create(cloud, tmp_path, traceparent=PARENT)
    create(cloud, tmp_path, traceparent="nonsense")
    eventually(lambda: len(collector.spans("create server")) == 2)
    _, trace, span, _ = PARENT.split("-")
    traces = {
        one.trace_id.hex(): one.parent_span_id.hex() for one in collector.spans("create server")
    }
    assert traces.pop(trace) == span
    assert list(traces.values()) == [""]


def test_an_endpoint_that_is_away_delays_traces_and_nothing_else(
    cloud: Cloud, collector: Collector, tmp_path: Path
) -> None:
    collector.status = 400
    create(cloud, tmp_path)
    eventually(lambda: collector.refused > 0)
    assert collector.spans() == []
    collector.status = 200
    eventually(lambda: len(collector.spans("create server")) == 1)


def test_what_a_conductor_ends_last_is_sent_when_it_stops(
    tmp_path: Path, collector: Collector
) -> None:
    made = Cloud(tmp_path, options=[*SCANS, ("tracing", "endpoint", collector.url)])
    made.start()
    eventually(made.ready)
    create(made, tmp_path)
    done = "SELECT count(*) FROM operations WHERE state = 'done'"
    eventually(lambda: look(tmp_path, done) == 1)
    made.stop()
    assert len(collector.spans("create server")) == 1


def test_off_opentelemetry_is_not_imported() -> None:
    code = (
        "import sys, micronova, conductor.service, launcher.wiring, api.compute.app\n"
        "assert not [one for one in sys.modules if one.startswith('opentelemetry')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_without_the_extra_it_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = config.load(configuration.registers("conductor"))
    store: Any = Store
    assert Tracer.of(conf, store, "c1") is None
    conf.set_override("endpoint", "http://127.0.0.1:1", group="tracing")
    monkeypatch.setitem(sys.modules, "conductor.tracing.export", None)
    with pytest.raises(ConfigurationError, match="pip install 'micronova"):
        Tracer.of(conf, store, "c1")
