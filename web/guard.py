"""The guard of an operation: version → content → policy → schema → the operation itself.

`Describe` makes an API's decorator, `Guard` is Falcon's responder, and `Api` is what an API adds:
how it reads requests, asks its policy and sends answers.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import falcon
import orjson

from common.errors import Invalid, MicronovaError, NotFound
from web.bodies import MALFORMED
from web.measuring import ACTION, ROUTE
from web.microversions import Versioned, parse
from web.schemas import Schema, Validator, Words, versioned

#: a path's parameters; `on` may put what they name in their place
Params = dict[str, Any]
Handler = Callable[..., Any]
Target = Mapping[str, Any] | None


class Call(Protocol):
    """A request, as an API's operations see it."""

    @property
    def version(self) -> int:
        """The microversion; 0 where the API has none."""

    @property
    def content(self) -> Any:
        """The body, where it names the action."""

    def expect_body(self, validate: Validator) -> None:
        """Refuse the body unless it is well formed, now or when the operation reads it."""

    def expect_query(self, validate: Validator | None) -> None:
        """Refuse the query string unless it is well formed; None: it may hold anything."""


C = TypeVar("C", bound=Call)
C_in = TypeVar("C_in", bound=Call)


class Api(Protocol[C_in]):
    """What one API adds to the guard."""

    @property
    def default_query(self) -> Versioned[Validator | None] | None:
        """What the query of a GET may hold where an operation doesn't say; None: anything."""

    @property
    def body_before_policy(self) -> bool:
        """Whether a wrong body is refused before what the path names is looked up."""

    def call(self, req: falcon.Request, resp: falcon.Response, params: Params) -> C_in:
        """Read the request. Raises what refuses it before its operation is known."""

    def check_request(
        self, req: falcon.Request, call: C_in, operation: Operation, status: int
    ) -> None:
        """Raise what refuses the request now that its operation is known."""

    def check(self, call: C_in, rule: str, target: Target) -> None:
        """Raise Forbidden unless the policy allows it."""

    def send(self, resp: falcon.Response, call: C_in, result: Any, status: int) -> None:
        """Answer with what the operation returned."""


@dataclass(frozen=True)
class Reply:
    """An answer that is more than a body."""

    body: Any = None
    status: int | None = None
    """None: the operation's."""
    headers: Mapping[str, str] = field(default_factory=dict)


def send_reply(resp: falcon.Response, result: Any, status: int) -> None:
    """Answer with a JSON body, or with a Reply.

    Bytes are sent as they are; so is an iterator of them, whose length is among the headers.
    """
    reply = result if isinstance(result, Reply) else Reply(result)
    resp.status = falcon.code_to_http_status(reply.status or status)
    for name, value in reply.headers.items():
        resp.set_header(name, value)
    if isinstance(reply.body, bytes):
        resp.content_type = "application/octet-stream"
        resp.data = reply.body
    elif isinstance(reply.body, Iterator):
        resp.content_type = "application/octet-stream"
        resp.stream = reply.body
    elif reply.body is not None:
        resp.content_type = "application/json"
        resp.data = orjson.dumps(reply.body)


@dataclass(frozen=True)
class Operation:
    """What is checked before a resource's method runs; see `Describe`."""

    rule: str | None
    asks: tuple[str, ...]
    since: int
    until: int | None
    absent: type[MicronovaError]
    status: Versioned[int]
    body: Versioned[Validator | None] | None
    query: Versioned[Validator | None] | None
    on: Callable[[Any, Params], Target] | None
    errors: Mapping[type[MicronovaError], type[MicronovaError]]
    accept: bool

    @property
    def rules(self) -> tuple[str, ...]:
        """The policy's rules that protect it."""
        return self.asks if self.rule is None else (self.rule, *self.asks)

    def about(self, noun: object) -> Operation:
        """Return it for a resource of this noun, whose rules have it in place of `{noun}`."""
        return dataclasses.replace(
            self,
            rule=None if self.rule is None else self.rule.format(noun=noun),
            asks=tuple(rule.format(noun=noun) for rule in self.asks),
        )

    def serves(self, version: int) -> bool:
        """Return whether the operation exists at a version."""
        return self.since <= version and (self.until is None or version <= self.until)


@dataclass(frozen=True)
class Describe:
    """An API's decorator for the methods of its resources."""

    body: Words
    query: Words
    oldest: str
    """The API's oldest version."""
    full: Callable[[str], str] = str
    """The full name of a rule."""

    def __call__(
        self,
        rule: str | None = None,
        *,
        asks: tuple[str, ...] = (),
        since: str | None = None,
        until: str | None = None,
        absent: type[MicronovaError] = NotFound,
        status: int | Mapping[str, int] = 200,
        body: Mapping[str, Schema | None] | None = None,
        query: Mapping[str, Schema | None] | None = None,
        on: Callable[[Any, Params], Target] | None = None,
        errors: Mapping[type[MicronovaError], type[MicronovaError]] | None = None,
        accept: bool = False,
    ) -> Callable[[Handler], Handler]:
        """Guard a resource's method `(self, call, **path parameters)`.

        `rule` is the policy's, `asks` are those that the method checks by itself; `{noun}` in
        them is the resource's attribute `noun`. `since` and `until` are the versions that have
        the operation, `absent` is what others raise, `status` is the answer's
        on success. `body` and `query` are schemas by the version that brought them. `on` finds
        what the path names, may replace its parameter, and returns the policy's target. `errors`
        maps errors to those that this operation raises instead. `accept`: the client must accept
        the API's media type.
        """
        codes = {self.oldest: status} if isinstance(status, int) else status
        described = Operation(
            rule=None if rule is None else self.full(rule),
            asks=tuple(map(self.full, asks)),
            since=parse(since or self.oldest),
            until=None if until is None else parse(until),
            absent=absent,
            status=Versioned(codes),
            body=None if body is None else versioned(body, self.body),
            query=None if query is None else versioned(query, self.query),
            on=on,
            errors=errors or {},
            accept=accept,
        )

        def describe(method: Handler) -> Handler:
            method.operation = described  # type: ignore[attr-defined]
            return method

        return describe


def operation_of(method: Handler) -> Operation:
    """Return the guard of a resource's method."""
    described: Operation = method.operation  # type: ignore[attr-defined]
    noun = getattr(getattr(method, "__self__", None), "noun", None)
    return described if noun is None else described.about(noun)


def with_guard(method: Handler, **changes: Any) -> Handler:
    """Return the same method with other fields of its `Operation`."""

    @functools.wraps(method)
    def changed(*given: Any, **named: Any) -> Any:
        return method(*given, **named)

    changed.operation = dataclasses.replace(operation_of(method), **changes)  # type: ignore[attr-defined]
    return changed


class Guard(Generic[C]):
    """Answers one method of one path: with the first operation that its version has.

    With `actions` the body names the operation (`{"os-start": null}`), as in Nova.
    """

    def __init__(
        self, api: Api[C], methods: Sequence[Handler], actions: Mapping[str, Handler]
    ) -> None:
        self._api = api
        self._methods = [(operation_of(method), method) for method in methods]
        self._actions = {name: (operation_of(one), one) for name, one in actions.items()}

    def __call__(self, req: falcon.Request, resp: falcon.Response, **params: str) -> None:
        """Answer, as Falcon's responder."""
        call = self._api.call(req, resp, params)
        described, method = self._method(call)
        # Only paths with an operation are labelled: the set of other paths is unbounded.
        req.env[ROUTE] = req.uri_template or ""
        if self._actions:
            # An existing action: the set of names is bounded.
            req.env[ACTION] = next(iter(call.content))
        status = described.status.at(call.version) or 200
        self._api.check_request(req, call, described, status)
        try:
            result = self._guarded(call, described, method, params, req.method == "GET")
        except tuple(described.errors) as error:
            wanted = next(kind for kind in described.errors if isinstance(error, kind))
            raise described.errors[wanted](error.message, **error.details) from error
        self._api.send(resp, call, result, status)

    def _method(self, call: C) -> tuple[Operation, Handler]:
        if self._actions:
            return self._action(call)
        for described, method in self._methods:
            if described.serves(call.version):
                return described, method
        raise self._methods[0][0].absent

    def _action(self, call: C) -> tuple[Operation, Handler]:
        if not isinstance(call.content, dict) or len(call.content) != 1:
            raise Invalid(MALFORMED)
        name = next(iter(call.content))
        found = self._actions.get(name)
        if found is None:
            raise Invalid(f"There is no such action: {name}")
        if not found[0].serves(call.version):
            raise found[0].absent
        return found

    def _guarded(
        self, call: C, described: Operation, method: Handler, params: Params, reads: bool
    ) -> Any:
        if self._api.body_before_policy:
            _expect_body(call, described)
        target = described.on(call, params) if described.on else None
        if described.rule is not None:
            self._api.check(call, described.rule, target)
        if not self._api.body_before_policy:
            _expect_body(call, described)
        query = described.query or (self._api.default_query if reads else None)
        call.expect_query(query.at(call.version) if query is not None else None)
        return method(call, **params)


def _expect_body(call: Call, described: Operation) -> None:
    validate = None if described.body is None else described.body.at(call.version)
    if validate is not None:
        call.expect_body(validate)


class _Responders:
    """What Falcon looks at for `on_get` and the like."""


def responders(
    api: Api[C],
    methods: Mapping[str, Iterable[Handler]],
    actions: Mapping[str, Handler] | None = None,
) -> object:
    """Return the Falcon resource of a path: {HTTP method: operations}; `actions` of a POST."""
    made = _Responders()
    for name, handlers in methods.items():
        setattr(made, f"on_{name.lower()}", Guard(api, list(handlers), actions or {}))
    return made


_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def methods_of(resource: object) -> dict[str, list[Handler]]:
    """Return {HTTP method: operations} of a resource's methods `on_get`, `on_post` …"""
    found = {name: getattr(resource, f"on_{name.lower()}", None) for name in _METHODS}
    return {name: [handler] for name, handler in found.items() if handler is not None}


def responders_of(api: Api[C], resource: object) -> object:
    """Return the Falcon resource whose operations are the methods `on_get`, `on_post` …"""
    return responders(api, methods_of(resource))
