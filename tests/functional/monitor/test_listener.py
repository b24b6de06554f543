"""The port of a service for operators, over HTTP."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus

import pytest

from common.metrics import table
from common.process.health import Health
from tests.functional.monitor.test_promtool import promtool
from tests.functional.waiting import eventually
from web import operators as listening
from web.operators import Listener


@contextlib.contextmanager
def answering(
    health: Health | None = None,
    port: int = 0,
    metrics: Callable[[], bytes] | None = None,
) -> Iterator[Listener]:
    respond = None if metrics is None else lambda: (HTTPStatus.OK, "text/plain", metrics())
    made = Listener(("127.0.0.1", port), health or Health(), respond, again_seconds=0.05)
    made.start()
    try:
        yield made
    finally:
        made.stop()


def ask(port: int, path: str, method: str = "GET") -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
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
        assert ask(port, "/inservice")[::2] == (404, b"not ok\n")
        state["ready"] = True
        eventually(lambda: ask(port, "/readyz?x=1")[0] == 200, 10)
        assert ask(port, "/inservice")[0] == 200
        assert ask(port, "/healthz", "HEAD")[::2] == (200, b"")


@pytest.mark.parametrize("path", ["/", "/servers", "/metrics/x"])
def test_there_is_nothing_else(path: str) -> None:
    with answering() as made:
        assert ask(made.wait_port(10), path)[0] == 404


def test_other_methods_are_refused() -> None:
    with answering() as made:
        assert ask(made.wait_port(10), "/metrics", "POST")[0] == 405


def test_a_port_in_use_is_taken_when_it_is_free(caplog: pytest.LogCaptureFixture) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        answering(port=other.getsockname()[1]) as made,
    ):
        assert made.wait_port(0.3) == 0
        assert sum("can't listen on" in one.getMessage() for one in caplog.records) == 1
        other.close()
        assert ask(made.wait_port(10), "/healthz")[0] == 200


SLOW = b"GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n"


def connect(port: int, first: bytes = b"", address: str = "127.0.0.1") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=60, source_address=(address, 0))
    made.sendall(first)
    return made


def rest_of(connection: socket.socket) -> bytes:
    """Return what comes until the other side closes; a reset is a close."""
    received = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while data := connection.recv(65536):
            received += data
    return bytes(received)


def crowd_of(
    stack: contextlib.ExitStack, port: int, number: int, first: bytes = b"", **more: str
) -> list[socket.socket]:
    return [stack.enter_context(connect(port, first, **more)) for _ in range(number)]


@pytest.mark.parametrize("words", [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nA: b\r\n"])
def test_unfinished_requests_keep_nobody_from_being_answered(words: bytes) -> None:
    with answering() as made, contextlib.ExitStack() as stack:
        port = made.wait_port(10)
        threads = threading.active_count()
        crowd = crowd_of(stack, port, 3 * listening.PLACES, words)
        assert ask(port, "/healthz")[0] == 200
        assert threading.active_count() <= threads + 3
        # Those that are more than an address may hold went at once, the others at their time.
        for each in crowd:
            assert rest_of(each)[:12] in (b"", b"HTTP/1.1 408")


def test_one_address_leaves_room_for_others() -> None:
    with answering() as made, contextlib.ExitStack() as stack:
        port = made.wait_port(10)
        other = stack.enter_context(connect(port, address="127.0.0.2"))
        crowd_of(stack, port, 2 * listening.PLACES)
        assert ask(port, "/healthz")[0] == 200
        other.sendall(b"GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n")
        assert rest_of(other).startswith(b"HTTP/1.1 200 ")


def test_bytes_that_trickle_win_no_time() -> None:
    with answering() as made, connect(made.wait_port(10), b"GET /heal") as connection:
        connection.settimeout(0.2)
        answer = b""
        for _ in range(100):
            with contextlib.suppress(ConnectionError):
                connection.sendall(b"t")
            with contextlib.suppress(TimeoutError):
                answer = connection.recv(100)
                break
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_neither_slow_scrapes_nor_a_slow_database_stop_the_health() -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()

    def slow(*_: object) -> bytes:
        begun.release()
        assert go_on.wait(30)
        return b"slow\n"

    health = Health({}, {"database": lambda: bool(slow())})
    with answering(health, metrics=slow) as made, contextlib.ExitStack() as stack:
        port = made.wait_port(10)
        stack.callback(go_on.set)
        scrapes = crowd_of(stack, port, listening.WAITING, SLOW)
        ready = crowd_of(stack, port, listening.WAITING, SLOW.replace(b"/metrics", b"/readyz"))
        assert begun.acquire(timeout=60)
        assert begun.acquire(timeout=60)
        # More of either are refused, and the health is answered.
        eventually(lambda: ask(port, "/metrics")[0] == 503, 10)
        eventually(lambda: ask(port, "/readyz")[2].startswith(b"Too many"), 10)
        assert ask(port, "/healthz")[0] == 200
        crowd_of(stack, port, listening.PLACES)
        assert ask(port, "/healthz")[0] == 200
        go_on.set()
        for each in scrapes:
            assert rest_of(each).endswith(b"\r\n\r\nslow\n")
        for each in ready:
            assert rest_of(each).endswith(b"\r\n\r\nok\n")


def test_a_scrape_that_nobody_reads_keeps_nobody_from_scraping() -> None:
    with answering(metrics=lambda: b"x" * 20_000_000) as made, contextlib.ExitStack() as stack:
        port = made.wait_port(10)
        crowd_of(stack, port, listening.WAITING, SLOW)
        eventually(lambda: len(ask(port, "/metrics")[2]) == 20_000_000, 20)


def test_what_fails_is_an_error_and_the_next_is_answered() -> None:
    asked = itertools.count()

    def broken_at_first() -> bytes:
        if next(asked) == 0:
            raise ValueError("no metrics")
        return b"well\n"

    with answering(metrics=broken_at_first) as made:
        port = made.wait_port(10)
        assert ask(port, "/metrics")[::2] == (500, b"failed\n")
        assert ask(port, "/metrics")[::2] == (200, b"well\n")
