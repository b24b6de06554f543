"""RPC by protocol classes: names, arguments and answers of a topic's methods, checked by mypy.

A topic's protocol is its table: method, message classes, answer. A `Remote` is a service as its
protocol; where it matters which server answers, clients name the protocol's methods,
``client.call(ctxt, Surface.method, argument=...)``. Endpoints implement the protocol; so a method
that is renamed on one side alone doesn't pass the type check.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from common import rpc
from common.context import RequestContext
from common.errors import Unavailable
from common.rpc import signatures

Surface = TypeVar("Surface")
P = ParamSpec("P")
Answer = TypeVar("Answer")

Method = Callable[Concatenate[Surface, RequestContext, P], Answer]


class TypedClient(Generic[Surface]):
    """Calls and casts to one topic, by the methods of its protocol; arguments are named."""

    def __init__(
        self,
        client: rpc.Client,
        *,
        server: str | None = None,
        fanout: bool = False,
        timeout_seconds: float | None = None,
        repeats: bool = False,
        look: rpc.Look | None = None,
    ) -> None:
        """``repeats``: another server is asked while one is silent. ``look``: asked in the end
        whether a call without an answer was carried out."""
        self._rpc, self._server, self._fanout = client, server, fanout
        self._timeout_seconds, self._repeats, self._look = timeout_seconds, repeats, look

    def to(self, server: str, timeout_seconds: float | None = None) -> TypedClient[Surface]:
        """Return a client of that server alone."""
        return TypedClient(self._rpc, server=server, timeout_seconds=timeout_seconds)

    def to_all(self) -> TypedClient[Surface]:
        """Return a client that casts to every listener."""
        return TypedClient(self._rpc, fanout=True)

    def call(
        self,
        ctxt: RequestContext,
        method: Method[Surface, P, Answer],
        *args: P.args,
        **values: P.kwargs,
    ) -> Answer:
        """Wait for the answer. Raises as ``rpc.Client.call``."""
        name = _name(method, args)
        try:
            answer = self._rpc.call(
                ctxt,
                name,
                server=self._server,
                timeout_seconds=self._timeout_seconds,
                repeats=self._repeats,
                **values,
            )
        except Unavailable as error:
            done = self._done(ctxt, method, error.details.get("call"))
            if done is None:
                raise
            answer = done.answer
        return cast(Answer, signatures.load_answer(method, answer))

    def _done(
        self, ctxt: RequestContext, method: Callable[..., Any], call: str | None
    ) -> rpc.Done | None:
        """Return the answer to a call that nobody answered, if it was carried out."""
        if call is None or self._look is None:
            return None
        return self._look(ctxt, call, method.__name__, signatures.answer_of(method))

    def cast(
        self,
        ctxt: RequestContext,
        method: Method[Surface, P, Any],
        *args: P.args,
        **values: P.kwargs,
    ) -> None:
        """Send without waiting. Raises as ``rpc.Client.cast``."""
        name = _name(method, args)
        self._rpc.cast(ctxt, name, server=self._server, fanout=self._fanout, **values)


Sent = TypeVar("Sent", bound=Callable[..., None])


def one_way(method: Sent) -> Sent:
    """Mark a protocol's method as a cast: nobody waits for its end."""
    method.__dict__["one_way"] = True
    return method


class Remote:
    """A service as its protocol: what is called on it is sent to any of the topic's servers.

    Calls raise as ``rpc.Client.call``. For mypy it is cast to its protocol.
    """

    def __init__(self, surface: type, client: TypedClient[Any]) -> None:
        self._surface, self._client = surface, client

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self._surface, name)
        names = list(inspect.signature(method).parameters)[2:]  # after self and ctxt
        casts = method.__dict__.get("one_way", False)
        send = self._client.cast if casts else self._client.call

        def call(ctxt: RequestContext, *args: Any, **values: Any) -> Any:
            if len(args) > len(names):
                raise TypeError(f"{name} takes {len(names)} arguments")
            return send(ctxt, method, **dict(zip(names, args, strict=False)), **values)

        setattr(self, name, call)  # as long as it lives
        return call


def _name(method: Callable[..., Any], args: tuple[Any, ...]) -> str:
    name: str = method.__name__
    if args:
        raise TypeError(f"{name}: RPC arguments are named.")
    return name
