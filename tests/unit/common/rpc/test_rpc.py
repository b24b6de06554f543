"""The end of an RPC server on a bus that notices it only with the next message."""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import Any

import oslo_messaging
import pytest
from oslo_config import cfg
from oslo_messaging.transport import RPCTransport

from common import config, context, errors, log, rpc
from common.context import RequestContext
from common.errors import Forbidden, NotFound, OperationFailed, Unavailable
from common.messages.topics import CONDUCTOR_EVENTS_TOPIC
from common.rpc.deadlines import Wait
from common.rpc.localbus import LocalDriver, _Listener


class _SlowListener(_Listener):
    """As the rabbit driver's: `stop` returns when a message came after it."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._stopping, self._woken = threading.Event(), threading.Event()

    def start(self, on_incoming_callback: Any) -> None:
        def incoming(messages: Any) -> None:
            on_incoming_callback(messages)
            if self._stopping.is_set():
                self._woken.set()

        super().start(incoming)

    def stop(self) -> None:
        self._stopping.set()
        assert self._woken.wait(60), "no message came"
        super().stop()


class _SlowDriver(LocalDriver):
    def listen(self, target: Any, batch_size: int, batch_timeout: float | None) -> _SlowListener:
        return _SlowListener(self._bus, target.topic, target.server)


#: all errors that aren't failures
_RAISED = {
    kind.__name__: kind
    for kind in errors.MicronovaError.__subclasses__()
    if kind.__module__ == errors.__name__
    and kind not in (errors.ConfigurationError, errors.OperationFailed)
}


class Endpoint:
    """Records what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def ask(self, ctxt: Any, what: str) -> str:
        """Answer."""
        self.asked.append(what)
        if what in _RAISED:
            raise _RAISED[what]
        if what == "nowhere":
            raise Unavailable("There is no storage for it.")
        if what == "silent":
            raise Unavailable("It was silent.") from oslo_messaging.MessagingTimeout("late")
        if what == "failed":
            raise Unavailable("It can't be looked at.") from OperationFailed("It has no VM.")
        if what == "lost":
            raise Unavailable("It was lost.") from OSError("closed")
        return what.upper()


def test_a_server_that_ends_is_woken() -> None:
    conf = cfg.ConfigOpts()
    rpc.register(conf)
    conf([])
    bus = RPCTransport(_SlowDriver(conf, "micronova-local://slow"))
    endpoint = Endpoint()
    server = rpc.Server(bus, "topic", "me", [endpoint], workers=1)
    server.start()
    assert rpc.Client(bus, "topic").call(context.internal(), "ask", what="a") == "A"
    server.stop()
    assert endpoint.asked == ["a"]


class Restarting(LocalDriver):
    """A broker that closes so many connections as they are set up."""

    closes = 0

    def listen(self, target: Any, batch_size: int, batch_timeout: float | None) -> _Listener:
        if self.closes:
            self.closes -= 1
            raise OSError("Server unexpectedly closed connection")
        return _Listener(self._bus, target.topic, target.server)


@pytest.mark.parametrize("closes", [2, 5])
def test_a_server_that_starts_while_the_broker_restarts(closes: int) -> None:
    conf = config.load([rpc.register, log.register])
    bus = RPCTransport(driver := Restarting(conf, f"micronova-local://restarting{closes}"))
    driver.closes = closes
    server = rpc.Server(bus, "topic", "me", [Endpoint()], workers=1)
    if closes == 5:
        with pytest.raises(OSError, match="closed"):
            server.start()
        return
    server.start()
    assert rpc.Client(bus, "topic").call(context.internal(), "ask", what="a") == "A"
    server.stop()


class Dead(LocalDriver):
    """A bus that takes nothing."""

    def send(self, *args: Any, **kwargs: Any) -> Any:
        raise oslo_messaging.MessageDeliveryFailure("the broker is away")


def test_what_the_bus_does_not_take_is_unavailable() -> None:
    conf = config.load([rpc.register, log.register])
    bus = RPCTransport(Dead(conf, "micronova-local://dead/", "openstack"))
    client = rpc.Client(bus, "topic")
    for send in (client.call, client.cast):
        with pytest.raises(Unavailable):
            send(RequestContext(), "hear", word="hello")


def test_a_message_carries_no_values_that_are_not_set() -> None:
    asked = RequestContext(user_id="user", roles=["member"], overwrite=False)
    sent = rpc._Serializer().serialize_context(asked)
    assert None not in sent.values()
    received = rpc._Serializer().deserialize_context(sent)
    assert received.to_message() == asked.to_message()


@pytest.mark.parametrize(
    ("what", "traced"),
    [("nowhere", False), ("silent", False), ("failed", False), ("lost", True)],
)
def test_only_an_error_behind_what_is_unavailable_has_a_traceback(
    what: str, traced: bool, caplog: pytest.LogCaptureFixture
) -> None:
    conf = config.load([rpc.register, log.register])
    bus = RPCTransport(LocalDriver(conf, f"micronova-local://{what}"))
    server = rpc.Server(bus, "topic", "me", [Endpoint()], workers=1)
    server.start()
    with pytest.raises(Unavailable):
        rpc.Client(bus, "topic").call(context.internal(), "ask", what=what)
    server.stop()
    assert bool([one for one in caplog.records if one.exc_info]) is traced
    assert traced or "ask is not carried out: " in caplog.text


@pytest.mark.parametrize("kind", sorted(_RAISED))
def test_a_refusal_is_one_line(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    conf = config.load([rpc.register, log.register])
    bus = RPCTransport(LocalDriver(conf, f"micronova-local://{kind}"))
    server = rpc.Server(bus, "topic", "me", [Endpoint()], workers=1)
    server.start()
    with pytest.raises(_RAISED[kind]):
        rpc.Client(bus, "topic").call(context.internal(), "ask", what=kind)
    server.stop()
    assert not [one for one in caplog.records if one.exc_info]
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


def test_what_only_a_newer_release_has_is_unavailable() -> None:
    """Not forbidden, although no sender may ask for what this release doesn't have."""
    conf = config.load([rpc.register, log.register])
    bus = RPCTransport(LocalDriver(conf, "micronova-local://newer"))
    endpoint = Endpoint()
    server = rpc.Server(bus, CONDUCTOR_EVENTS_TOPIC, "me", [endpoint], workers=1)
    server.start()
    client = rpc.Client(bus, CONDUCTOR_EVENTS_TOPIC)
    with pytest.raises(Unavailable, match="has no method ask_more"):
        client.call(context.internal(), "ask_more", what="x")
    with pytest.raises(Forbidden, match="may not ask for ask"):
        client.call(context.internal(), "ask", what="x")
    server.stop()
    assert endpoint.asked == []


class Slow:
    """Carries out what another server has carried out since it was asked."""

    def __init__(self) -> None:
        self.done: dict[str, Any] = {}

    def delete_port(self, ctxt: Any, port: str) -> None:
        """Find nothing to delete."""
        self.done["a call"] = None
        raise NotFound(port)

    def create_group(self, ctxt: Any, group: str) -> str:
        """Be refused by the database."""
        self.done["a call"] = "its ID"
        raise Unavailable("This call has come before.", outcome=rpc.UNKNOWN)

    def look(self, ctxt: Any, call: str, method: str, kind: Any) -> rpc.Done | None:
        return rpc.Done(self.done[call]) if call in self.done else None


@pytest.mark.parametrize(("method", "answer"), [("delete_port", None), ("create_group", "its ID")])
@pytest.mark.parametrize(("call", "again"), [("a call", True), ("a call", False), ("b", True)])
def test_a_repeated_call_is_answered_as_a_slow_server_has_carried_it_out(
    method: str, answer: Any, call: str, again: bool
) -> None:
    conf = config.load([rpc.register, log.register])
    bus, slow = rpc.within(conf), Slow()
    server = rpc.Server(bus, "topic", "me", [slow], workers=1, look=slow.look)
    server.start()
    asked = rpc._Waiting(context.internal(), Wait(30.0, 5.0, call=call, again=again))
    prepared = rpc.Client(bus, "topic")._client.prepare(timeout=30)
    is_done = again and call == "a call"
    with contextlib.nullcontext() if is_done else pytest.raises((NotFound, Unavailable)):
        assert prepared.call(asked, method, **{method.partition("_")[2]: "x"}) == answer
    server.stop()


class Beside(LocalDriver):
    """A bus with servers in other processes."""

    in_process = False


class Late:
    """Gets so many messages when who sent them has given up."""

    def __init__(self, times: int) -> None:
        self.times, self.calls = times, 0

    def ask(self, ctxt: Any) -> str:
        """Answer."""
        self.calls += 1
        if self.calls <= self.times:
            raise Unavailable("Who asked has given up waiting: nothing is done.", given_up=True)
        return "done"


@pytest.mark.parametrize(("times", "calls"), [(0, 1), (1, 2), (2, 3), (3, 3)])
def test_another_server_is_asked_where_one_says_that_the_call_came_too_late(
    times: int, calls: int
) -> None:
    """Nothing is done, and there is time; but one whose clock is wrong always says so."""
    conf = config.load([rpc.register, log.register])
    bus, late = RPCTransport(Beside(conf, f"micronova-local://late{times}")), Late(times)
    server = rpc.Server(bus, "topic", "me", [late], workers=1)
    server.start()
    with contextlib.nullcontext() if times < calls else pytest.raises(Unavailable):
        assert rpc.Client(bus, "topic").call(context.internal(), "ask", repeats=True) == "done"
    assert late.calls == calls
    server.stop()
