"""RPC between the services: oslo.messaging, dataclasses in, dataclasses out.

``rabbit://`` with quorum queues when distributed, ``micronova-local://`` when embedded. Arguments
and results cross as JSON text made by orjson, the request context beside them; a message carries
its interface version, so that two releases can talk during a rolling upgrade.
"""

from __future__ import annotations

import concurrent.futures
import inspect
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from oslo_config import cfg

from common import codec, context
from common.context import RequestContext
from common.errors import (
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    NotSupported,
    NoValidHost,
    OperationFailed,
    PreconditionFailed,
    TooLarge,
    Unauthorized,
    Unavailable,
    Unimplemented,
)
from common.log import logger
from common.metrics import messages, table
from common.release import VERSION
from common.rpc import deadlines, own_queues, rabbit, senders, signatures
from common.rpc.deadlines import Deadline, Wait
from common.rpc.messaging import (
    RPCServer,
    amqpdriver,
    messaging_options,
    metrics_options,
    oslo_messaging,
    tracing_options,
)
from common.rpc.signs import Signs

LOG = logger(__name__)

# After every message the rabbit driver's threads would wake up a dozen times, after 1 ms, 2 ms, 4
# ms and so on, to send acknowledgements of notifications. Ours are sent by the thread that takes
# the message, so that there is nothing to wake up for.
amqpdriver.ACK_REQUEUE_EVERY_SECONDS_MIN = amqpdriver.ACK_REQUEUE_EVERY_SECONDS_MAX

#: threads of a service, unless `[rpc] rpc_workers` says otherwise
_WORKERS = 16

OPTIONS = [
    cfg.IntOpt(
        "rpc_timeout_seconds",
        default=30,
        min=1,
        help="Seconds that a call waits for its answer before it fails as unavailable.",
    ),
    cfg.IntOpt(
        "silence_seconds",
        default=5,
        min=1,
        help="Seconds that a call of the APIs waits for a sign of the conductor that took it, "
        "before another conductor is asked. A conductor that works on a call gives signs. Where "
        "it is frozen or cut off it gives none, and does nothing later that was asked of another.",
    ),
    cfg.IntOpt(
        "rpc_workers",
        default=_WORKERS,
        min=1,
        max=256,
        help="Threads in which a service answers messages; the message bus delivers as many "
        "ahead ([oslo_messaging_rabbit] rabbit_qos_prefetch_count), and no more: what a frozen "
        "service was given waits until the bus closes its connection.",
    ),
]

#: modules whose exceptions are rebuilt on the caller's side
REMOTE_ERRORS = ["common.errors"]

#: errors of the caller: one line in the log, no traceback
REFUSALS = (
    *(Invalid, Unauthorized, Forbidden, NotFound, Conflict, Gone, TooLarge),
    *(NoValidHost, NotSupported, PreconditionFailed, Unimplemented),
)

#: None: the DEFAULT group, with transport_url
_MESSAGING_GROUPS = (None, "oslo_messaging_rabbit")

#: replicated queues, so that no manual recovery is needed
_RABBIT_DEFAULTS = {
    "rabbit_quorum_queue": True,
    "rabbit_transient_quorum_queue": True,
    "use_queue_manager": False,
    # A silent connection is closed after two of them; then others get what it was given.
    "heartbeat_timeout_threshold": 15,
    # See `transport`: as many as there are threads.
    "rabbit_qos_prefetch_count": _WORKERS,
}

#: Debian's file of the authorities that the system trusts
_TRUSTED = "/etc/ssl/certs/ca-certificates.crt"


def register(conf: cfg.ConfigOpts) -> None:
    """Declare this module's options and oslo.messaging's; idempotent."""
    conf.register_opts(OPTIONS, group="rpc")
    for group, options in messaging_options.list_opts():
        if group in _MESSAGING_GROUPS:
            conf.register_opts(options, group=group)
    for name, value in _RABBIT_DEFAULTS.items():
        conf.set_default(name, value, group="oslo_messaging_rabbit")
    # Without a file nothing would be verified.
    conf.set_default("ssl_ca_file", _TRUSTED, group="oslo_messaging_rabbit")
    # oslo.messaging registers these on the global object only.
    conf.register_opts(tracing_options.oslo_messaging_tracing, group="oslo_messaging_tracing")
    conf.register_opts(metrics_options.oslo_messaging_metrics, group="oslo_messaging_metrics")


def list_opts() -> list[tuple[str | None, list[cfg.Opt]]]:
    """Return the options for the sample configuration."""
    theirs = [item for item in messaging_options.list_opts() if item[0] in _MESSAGING_GROUPS]
    return [("rpc", list(OPTIONS)), *theirs]


#: the key of a message's context with how long its caller waits
_WAIT = "wait"


@dataclass(frozen=True)
class _Waiting:
    """A request context with how long the caller waits."""

    ctxt: RequestContext
    wait: Wait


class _Serializer(oslo_messaging.Serializer):  # type: ignore[misc]
    """Serializes entities as JSON text and the context as plain values."""

    def serialize_entity(self, ctxt: RequestContext, entity: Any) -> str:
        return codec.dumps(entity)

    def deserialize_entity(self, ctxt: RequestContext, entity: Any) -> Any:
        return codec.loads(entity)

    def serialize_context(self, ctxt: RequestContext | _Waiting) -> dict[str, Any]:
        if isinstance(ctxt, _Waiting):
            return {**_set(ctxt.ctxt), _WAIT: ctxt.wait.to_message()}
        return _set(ctxt)

    def deserialize_context(self, ctxt: dict[str, Any]) -> RequestContext:
        return RequestContext.from_message(ctxt)


def _set(ctxt: RequestContext) -> dict[str, Any]:
    """Return the values that are set, so that messages are short."""
    return {name: value for name, value in ctxt.to_message().items() if value is not None}


def transport(conf: cfg.ConfigOpts) -> oslo_messaging.Transport:
    """Return the transport that ``transport_url`` names."""
    conf.set_default(
        "rabbit_qos_prefetch_count", conf.rpc.rpc_workers, group="oslo_messaging_rabbit"
    )
    made = oslo_messaging.get_rpc_transport(conf, allowed_remote_exmods=REMOTE_ERRORS)
    rabbit.prepare(made)
    return made


def within(conf: cfg.ConfigOpts) -> oslo_messaging.Transport:
    """Return a transport of its own for services that share a process: no broker takes part."""
    url = f"micronova-local://{secrets.token_hex(8)}"
    return oslo_messaging.get_rpc_transport(conf, url, allowed_remote_exmods=REMOTE_ERRORS)


#: a call of one server that may take longer is given up after so long without a sign of it: a
#: message that was delivered to a process that died, or stands still, is never answered
SILENT_SECONDS = 20.0

#: a call was sent and nobody answered: it may have been carried out
UNKNOWN = "unknown"


class Client:
    """Calls and casts to one topic."""

    def __init__(self, bus: oslo_messaging.Transport, topic: str, version: str = "1.0") -> None:
        target = oslo_messaging.Target(topic=topic, version=version)
        self._topic = topic
        self._client = oslo_messaging.get_rpc_client(bus, target, serializer=_Serializer())
        self._timeout = bus.conf.rpc.rpc_timeout_seconds
        self._silence = bus.conf.rpc.silence_seconds
        #: within one process there is no other server to ask
        self._alone = getattr(bus._driver, "in_process", False)

    def call(
        self,
        ctxt: RequestContext,
        method: str,
        *,
        timeout_seconds: float | None = None,
        server: str | None = None,
        repeats: bool = False,
        **args: Any,
    ) -> Any:
        """Wait for the answer, as plain values; with ``server``, of that one.

        With ``repeats`` another server is asked after ``[rpc] silence_seconds`` without a sign of
        the first one, until the time is over: what may be asked twice. A long call with ``server``
        is given up after ``SILENT_SECONDS`` without one.

        Raises the callee's error, or Unavailable; with the detail ``outcome`` UNKNOWN where it may
        have been carried out. It won't be any more: see ``common.rpc.deadlines``.
        """
        seconds, call = timeout_seconds or self._timeout, secrets.token_hex(16)
        try:
            with messages.calling(self._topic, method, _result):
                if repeats and not self._alone:
                    return self._call_any(ctxt, method, seconds, call, args)
                where = {"server": server} if server else {}
                patience = self._patience(seconds) if server else None
                prepared = self._client.prepare(
                    timeout=seconds, call_monitor_timeout=patience, **where
                )
                wait = Wait(seconds, patience, call=call)
                return prepared.call(_Waiting(ctxt, wait), method, **args)
        except Unavailable as error:  # as of a database that was lost at the end
            if error.details.get("outcome") == UNKNOWN:
                error.details["call"] = call
            raise
        except (oslo_messaging.MessagingTimeout, oslo_messaging.MessageDeliveryFailure) as error:
            raise Unavailable(
                f"The service behind {method} did not answer.", outcome=UNKNOWN, call=call
            ) from error
        except oslo_messaging.MessageUndeliverable as error:
            raise Unavailable(f"The service behind {method} did not answer.") from error

    def _patience(self, seconds: float) -> float | None:
        """Return how long a call of one server waits for a sign; None: for its answer alone."""
        return None if self._alone or seconds <= SILENT_SECONDS else SILENT_SECONDS

    def _call_any(
        self, ctxt: RequestContext, method: str, seconds: float, call: str, args: dict[str, Any]
    ) -> Any:
        """Call, and ask another server while one is silent, or answers that the message came too
        late to it, as long as there is time."""
        end, again, late = time.monotonic() + seconds, False, 0
        silence = min(self._silence, max(1.0, seconds / _MOST_SILENT))
        while True:
            left = max(end - time.monotonic(), silence)
            prepared = self._client.prepare(timeout=left, call_monitor_timeout=silence)
            wait = Wait(left, silence, call=call, again=again)
            try:
                return prepared.call(_Waiting(ctxt, wait), method, **args)
            except oslo_messaging.MessagingTimeout:
                if end - time.monotonic() < 1.0:
                    raise
            except Unavailable as error:
                late += 1
                # One with a wrong clock says so at once, and each time.
                given_up = error.details.get("given_up") and late < _MOST_SILENT
                if not given_up or end - time.monotonic() < 1.0:
                    raise
            LOG.warning("Nobody answered %s for %.1f s; asking another one.", method, silence)
            table.RPC_REPEATED.count(self._topic, method)
            again = True

    def cast(
        self,
        ctxt: RequestContext,
        method: str,
        *,
        server: str | None = None,
        fanout: bool = False,
        **args: Any,
    ) -> None:
        """Send without waiting. With ``server``, to that one; with ``fanout``, to every listener.

        Raises Unavailable when the message bus doesn't take it.
        """
        prepared = self._client.prepare(server=server) if server else self._client
        if fanout:
            prepared = self._client.prepare(fanout=True)
        try:
            with messages.casting(self._topic, method):
                prepared.cast(ctxt, method, **args)
        except oslo_messaging.MessagingException as error:
            raise Unavailable(f"The message bus did not take {method}.") from error


#: how many servers may be silent, or late, one after the other, while a short call waits
_MOST_SILENT = 3


def _result(error: Exception) -> str:
    """Return a word for how a call or a message ended, for its metrics."""
    if isinstance(error, oslo_messaging.ExpectedException):
        error = error.exc_info[1]
    if isinstance(error, REFUSALS):
        return "refused"
    if isinstance(error, Unavailable):
        return "given_up" if error.details.get("given_up") else "unavailable"
    return "unavailable" if isinstance(error, oslo_messaging.MessagingException) else "error"


#: an empty message, which wakes a thread that waits for messages
_WAKE = "_wake"
#: seconds until an ending server is woken, again should the message have come too early
_WAKE_AFTER, _WAKE_AGAIN = 0.05, 1.0
#: how often a server tries to listen; each time the driver waits until the broker is reachable
_STARTS = 5


def _is_traced(error: Unavailable) -> bool:
    """Return whether something unexpected is behind it: not a service that doesn't answer, nor
    what a hypervisor says."""
    known = oslo_messaging.MessagingException | OperationFailed | None
    expected = isinstance(error.__cause__, known)
    return not expected and not error.details.get("given_up")


@dataclass(frozen=True)
class Done:
    """A call was carried out before."""

    answer: Any


Look = Callable[[RequestContext, str, str, Any], Done | None]
"""Returns what a call was answered when another server carried it out, given its ID, its method
and the type of its answer; None: it was not carried out."""

_signs = Signs()


class _Dispatcher(oslo_messaging.RPCDispatcher):  # type: ignore[misc]
    """Answers refusals as expected errors, without a traceback in the log."""

    _look: Look | None = None

    def ask_of_repeated(self, look: Look | None) -> None:
        """Ask this about repeated calls, before they are carried out."""
        self._look = look

    def of_known_senders(self, known: bool) -> None:
        """Whether the broker vouches for senders: then a message must have one."""
        self._known_senders = known

    def measured(self, topic: str, endpoints: Sequence[object]) -> None:
        """Measure messages as those of a topic, with the methods that its endpoints have."""
        self._topic = topic
        self._names = frozenset(name for one in endpoints for name in dir(one))
        self._kinds: dict[str, Any] = {}

    def dispatch(self, incoming: Any) -> Any:
        method = incoming.message.get("method")
        if method == _WAKE:
            return None
        arrived = getattr(incoming, "arrived", None)
        waited = None if arrived is None else time.monotonic() - arrived
        name = method if method in self._names else "unknown"
        with messages.handling(self._topic, name, waited, _result):
            return self._dispatch(incoming)

    def _done(self, incoming: Any, deadline: Deadline | None) -> Done | None:
        """Return what a repeated call was answered when it was carried out."""
        if deadline is None or self._look is None or deadline.wait.patience is None:
            return None
        kind = self._kind(incoming.message["method"])
        deadline.answers_nothing = kind is type(None)
        if not deadline.wait.again or kind is inspect.Parameter.empty:
            return None
        ctxt = self.serializer.deserialize_context(incoming.ctxt)
        return self._look(ctxt, deadline.wait.call, incoming.message["method"], kind)

    def _kind(self, method: str) -> Any:
        """Return the type of a method's answer; ``Parameter.empty``: there is no such method."""
        if method not in self._names:
            return inspect.Parameter.empty
        if method not in self._kinds:
            self._kinds[method] = self._find_kind(method)
        return self._kinds[method]

    def _find_kind(self, method: str) -> Any:
        called = next(
            (getattr(one, method) for one in self.endpoints if hasattr(one, method)), None
        )
        if called is None:
            return inspect.Parameter.empty
        return signatures.answer_of(inspect.unwrap(getattr(called, "__func__", called)))

    def _check(self, incoming: Any) -> None:
        """Raise Forbidden for what the sender's kind of service doesn't ask."""
        user = incoming.ctxt.get(rabbit.SENDER)
        method = incoming.message.get("method")
        if user is None and self._known_senders:
            raise Forbidden(f"A message that names no sender asks for {method}.")
        # What only a newer release has, nobody may ask of this one, and nobody can.
        if method in self._names:
            senders.check(user, self._topic, method)

    def _carry_out(self, incoming: Any) -> Any:
        try:
            return super().dispatch(incoming)
        except oslo_messaging.NoSuchMethod as error:
            # Its sender is of a newer release.
            raise Unavailable(f"Release {VERSION} has no method {error.method}.") from None

    def _answer(self, incoming: Any, deadline: Deadline | None) -> Any:
        """Carry a call out, once: also if a server that was asked before was only slow."""
        done = self._done(incoming, deadline)
        if done is None:
            try:
                return self._carry_out(incoming)
            except (Unavailable, *REFUSALS):
                done = self._done(incoming, deadline)
                if done is None:
                    raise
        return self.serializer.serialize_entity(None, done.answer)

    def _dispatch(self, incoming: Any) -> Any:
        deadline: Deadline | None = getattr(incoming, "deadline", None)
        try:
            self._check(incoming)
            with _signs.sent_for(incoming, deadline), deadlines.answering(deadline):
                return self._answer(incoming, deadline)
        except Unavailable as error:
            if _is_traced(error):
                raise  # oslo.messaging logs the traceback of the error that caused it
            LOG.warning("%s is not carried out: %s", incoming.message.get("method"), error.message)
            raise oslo_messaging.ExpectedException from error
        except REFUSALS as error:
            LOG.info("%s is refused: %s", incoming.message.get("method"), error.message)
            raise oslo_messaging.ExpectedException from error


class _Receiver(RPCServer):  # type: ignore[misc]
    """Notes when a message arrives, and its deadline, before it waits for a thread."""

    #: threads that wait for messages
    workers = _WORKERS

    def _create_listener(self) -> Any:
        with rabbit.of_threads(self.workers):
            return super()._create_listener()

    def _on_incoming(self, incoming: Any) -> None:
        for message in incoming:
            message.arrived = time.monotonic()
            wait = Wait.from_message(message.ctxt.get(_WAIT))
            if wait is not None:
                message.deadline = Deadline(wait, message.arrived)
                message.client_timeout = None  # the library would begin a thread for each call
        super()._on_incoming(incoming)


class Server:
    """Listens on a topic and answers with the public methods of its endpoints."""

    def __init__(
        self,
        bus: oslo_messaging.Transport,
        topic: str,
        name: str,
        endpoints: Sequence[object],
        *,
        workers: int | None = None,
        look: Look | None = None,
    ) -> None:
        """``look`` knows which calls were carried out: it is asked about repeated ones."""
        self._workers = workers or bus.conf.rpc.rpc_workers
        self._own, self._name = Client(bus, topic), name
        own_queues.add(topic, name)
        self._bus, self._target = bus, oslo_messaging.Target(topic=topic, server=name)
        self._dispatcher = _Dispatcher(
            [signatures.TypedEndpoint(one) for one in endpoints],
            _Serializer(),
            oslo_messaging.DefaultRPCAccessPolicy,
        )
        self._dispatcher.measured(topic, endpoints)
        self._dispatcher.ask_of_repeated(look)
        self._dispatcher.of_known_senders(rabbit.is_rabbit(bus))
        self._server = self._receiver()

    def _receiver(self) -> _Receiver:
        receiver = _Receiver(self._bus, self._target, self._dispatcher)
        # futurist's idle threads look once a second whether they are to end; these wait for it.
        receiver._executor_cls = concurrent.futures.ThreadPoolExecutor
        receiver.workers = self._workers
        return receiver

    def start(self) -> None:
        """Start listening; returns at once.

        The start is retried if the broker closes the connection during the set-up, as at any other
        time. Raises OSError if that happens each time.
        """
        for left in reversed(range(_STARTS)):
            try:
                self._server.start(override_pool_size=self._workers)
                return
            except OSError as error:
                if not left:
                    raise
                LOG.warning("The message bus closed a new connection: %s. Trying again.", error)
                self._server = self._receiver()

    def stop(self) -> None:
        """Stop listening, and finish the messages taken."""
        stopped = threading.Event()
        waker = threading.Thread(target=self._wake, args=(stopped,), name="wake", daemon=True)
        waker.start()
        self._server.stop()
        stopped.set()
        self._server.wait()

    def _wake(self, stopped: threading.Event) -> None:
        """Send ourselves a message: the rabbit driver sees only with the next one, or after up to
        five seconds, that it must stop listening."""
        pause = _WAKE_AFTER
        while not stopped.wait(pause):
            pause = _WAKE_AGAIN
            try:
                self._own.cast(context.internal(), _WAKE, server=self._name)
            except Unavailable:
                LOG.warning(
                    "The message bus doesn't answer; waiting some seconds for it before the end."
                )
                return
