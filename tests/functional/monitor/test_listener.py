"""The port of a service for operators, over HTTP."""

from __future__ import annotations

import contextlib
import http.client
import socket
from collections.abc import Iterator

import pytest

from common.health import Health
from common.metrics import listener as listening
from common.metrics import table
from common.metrics.listener import Listener
from tests.functional.monitor.test_promtool import promtool
from tests.functional.waiting import eventually


@contextlib.contextmanager
def answering(health: Health | None = None, port: int = 0) -> Iterator[Listener]:
    made = Listener(("127.0.0.1", port), health or Health())
    made.start()
    try:
        yield made
    finally:
        made.stop()


def ask(port: int, path: str, method: str = "GET") -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.closing(connection):
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read()


def test_metrics_are_answered_as_prometheus_reads_them() -> None:
    table.DECISIONS.count("placed")
    table.STAGE_SECONDS.observe(0.2, "create", "place")
    with answering() as made:
        status, kind, body = ask(made.wait_port(10), "/metrics")
    assert status == 200
    assert kind.startswith("text/plain; version=")
    assert b'micronova_scheduler_decisions_total{result="placed"}' in body
    assert b"_created" not in body
    promtool("check", "metrics", text=body)


def test_health_is_a_status_without_details() -> None:
    state = {"alive": True, "ready": False}
    health = Health({"loop": lambda: state["alive"]}, {"database": lambda: state["ready"]})
    with answering(health) as made:
        port = made.wait_port(10)
        assert ask(port, "/healthz")[::2] == (200, b"ok\n")
        assert ask(port, "/readyz")[::2] == (503, b"not ok\n")
        state["ready"] = True
        eventually(lambda: ask(port, "/readyz?x=1")[0] == 200, 10)
        assert ask(port, "/healthz", "HEAD")[::2] == (200, b"")


@pytest.mark.parametrize("path", ["/", "/servers", "/metrics/x"])
def test_there_is_nothing_else(path: str) -> None:
    with answering() as made:
        assert ask(made.wait_port(10), path)[0] == 404


def test_other_methods_are_refused() -> None:
    with answering() as made:
        assert ask(made.wait_port(10), "/metrics", "POST")[0] == 501


def test_a_port_in_use_is_taken_when_it_is_free(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listening, "AGAIN_SECONDS", 0.05)
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        answering(port=other.getsockname()[1]) as made,
    ):
        assert made.wait_port(0.3) == 0
        assert sum("can't listen on" in one.getMessage() for one in caplog.records) == 1
        other.close()
        assert ask(made.wait_port(10), "/healthz")[0] == 200


def test_silent_clients_do_not_keep_it_from_answering() -> None:
    with answering() as made, contextlib.ExitStack() as stack:
        port = made.wait_port(10)
        for _ in range(listening._AT_ONCE - 1):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert ask(port, "/healthz")[0] == 200
