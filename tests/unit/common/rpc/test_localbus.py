from __future__ import annotations

import threading
from typing import Any

import pytest

from common import config, log, rpc
from common.context import RequestContext
from common.errors import QuotaExceeded, Unavailable


class Endpoint:
    def __init__(self, name: str = "a") -> None:
        self.name = name
        self.received: list[Any] = []
        self.event = threading.Event()

    def add(self, ctxt: RequestContext, first: int, second: int) -> int:
        return first + second

    def who(self, ctxt: RequestContext) -> list[str | None]:
        return [ctxt.request_id, ctxt.project_id, self.name]

    def fail(self, ctxt: RequestContext) -> None:
        raise QuotaExceeded("Quota exceeded for cores", resource=["cores"], limit=[1])

    def hear(self, ctxt: RequestContext, word: str) -> None:
        self.received.append(word)
        self.event.set()


@pytest.fixture
def transport(request: pytest.FixtureRequest) -> Any:
    conf = config.load([rpc.register, log.register])
    conf.set_override("transport_url", f"micronova-local://{request.node.name}/")
    return rpc.transport(conf)


def test_calls_casts_and_fanout(transport: Any) -> None:
    one, two = Endpoint("one"), Endpoint("two")
    client = rpc.Client(transport, "topic")
    ctxt = RequestContext(project_id="p")
    client.cast(ctxt, "hear", word="before anybody listened")
    servers = [
        rpc.Server(transport, "topic", endpoint.name, [endpoint], workers=2)
        for endpoint in (one, two)
    ]
    for server in servers:
        server.start()
    try:
        assert client.call(ctxt, "add", first=1, second=2) == 3
        names = {client.call(ctxt, "who")[2] for _ in range(4)}
        assert names == {"one", "two"}
        assert client.call(ctxt, "who")[:2] == [ctxt.request_id, "p"]
        assert one.event.wait(60)
        one.event.clear()
        client.cast(ctxt, "hear", server="two", word="only two")
        assert two.event.wait(60)
        two.event.clear()
        client.cast(ctxt, "hear", fanout=True, word="all")
        assert one.event.wait(60)
        assert two.event.wait(60)
        assert one.received == ["before anybody listened", "all"]
        assert two.received == ["only two", "all"]
    finally:
        for server in servers:
            server.stop()


def test_a_refusal_is_one_line_in_the_log(
    transport: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    server = rpc.Server(transport, "topic", "x", [Endpoint()], workers=1)
    server.start()
    try:
        with pytest.raises(QuotaExceeded):
            rpc.Client(transport, "topic").call(RequestContext(), "fail")
    finally:
        server.stop()
    logged = [(one.levelname, one.getMessage(), one.exc_info) for one in caplog.records]
    assert logged == [("INFO", "fail is refused: Quota exceeded for cores", None)]


def test_errors_cross_with_their_details(transport: Any) -> None:
    server = rpc.Server(transport, "topic", "x", [Endpoint()], workers=1)
    server.start()
    try:
        with pytest.raises(QuotaExceeded) as raised:
            rpc.Client(transport, "topic").call(RequestContext(), "fail")
    finally:
        server.stop()
    assert raised.value.message == "Quota exceeded for cores"
    assert raised.value.details == {"resource": ["cores"], "limit": [1]}


def test_nobody_there_is_unavailable(transport: Any) -> None:
    client = rpc.Client(transport, "nobody")
    with pytest.raises(Unavailable):
        client.call(RequestContext(), "add", timeout_seconds=0.01, first=1, second=2)


def test_a_call_that_nobody_waits_for_any_more_is_not_answered(transport: Any) -> None:
    client = rpc.Client(transport, "late")
    with pytest.raises(Unavailable):
        client.call(RequestContext(), "hear", timeout_seconds=0.01, word="too late")
    client.cast(RequestContext(), "hear", word="in time")
    endpoint = Endpoint()
    server = rpc.Server(transport, "late", "x", [endpoint], workers=1)
    server.start()
    try:
        assert endpoint.event.wait(60)
    finally:
        server.stop()
    assert endpoint.received == ["in time"]
