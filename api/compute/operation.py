"""The guard of a door: microversion → what the path names → policy → schema → the resource."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import falcon
import orjson

from api.compute import errors, microversions
from api.compute.call import Call, Cloud, Reply
from api.compute.links import PROJECT, links_of
from api.compute.microversions import Versioned
from api.compute.query import Query
from api.compute.validation import Schema, Validator
from common.errors import Invalid, MicronovaError, NotFound
from web import bodies, wsgi

Params = dict[str, str]
Finder = Callable[[Call, Params], Mapping[str, Any]]
Handler = Callable[..., Any]

_JSON = ("application/json", "application/vnd.openstack.compute+json", "text/plain")
_VARY = f"{microversions.HEADER}, {microversions.LEGACY_HEADER}"


@dataclass(frozen=True)
class Operation:
    """What is asked before a resource's method runs; see `operation`."""

    rule: str | None
    since: int
    until: int | None
    status: Versioned[int]
    body: Versioned[Validator] | None
    query: Versioned[Validator] | None
    on: Finder | None
    errors: Mapping[type[MicronovaError], type[MicronovaError]]

    def serves(self, version: int) -> bool:
        """Whether the operation exists at a version."""
        return self.since <= version and (self.until is None or version <= self.until)


def operation(
    rule: str | None,
    *,
    since: str = "2.1",
    until: str | None = None,
    status: int | Mapping[str, int] = 200,
    body: Mapping[str, Schema] | None = None,
    query: Mapping[str, Schema] | None = None,
    on: Finder | None = None,
    errors: Mapping[type[MicronovaError], type[MicronovaError]] | None = None,
) -> Callable[[Handler], Handler]:
    """Guard a resource's method `(self, call, **path parameters) -> body, Reply or None`.

    `rule` is the policy's (None: the method asks itself), `since` and `until` the versions that
    have the operation, `status` what success answers. `body` and `query` are schemas by the
    version that brought them. `on` finds what the path names, may take its parameter away, and
    returns the policy's target. `errors` tells which errors this operation answers as others.
    """
    codes = {"2.1": status} if isinstance(status, int) else status
    described = Operation(
        rule=rule,
        since=microversions.parse(since),
        until=None if until is None else microversions.parse(until),
        status=Versioned(codes),
        body=None if body is None else _validators(body),
        query=None if query is None else _validators(query, query=True),
        on=on,
        errors=errors or {},
    )

    def describe(method: Handler) -> Handler:
        method.operation = described  # type: ignore[attr-defined]
        return method

    return describe


def operation_of(method: Handler) -> Operation:
    """The guard of a resource's method."""
    described: Operation = method.operation  # type: ignore[attr-defined]
    return described


def _validators(schemas: Mapping[str, Schema], *, query: bool = False) -> Versioned[Validator]:
    return Versioned(
        {since: _validator(id(schema), schema, query) for since, schema in schemas.items()}
    )


_made: dict[tuple[int, bool], Validator] = {}


def _validator(identity: int, schema: Schema, query: bool) -> Validator:
    """One validator a schema: the same module-level dict serves many operations."""
    return _made.setdefault((identity, query), Validator(schema, query=query))


#: what the query of a GET may hold where an operation says nothing: nothing, since 2.102
_NO_QUERY = _validators(
    {"2.1": {}, "2.102": {"type": "object", "additionalProperties": False}}, query=True
)


class Door:
    """Answers one method of one path: with the first operation that its version has.

    With `actions` the body names the operation (`{"os-start": null}`), as in Nova.
    """

    def __init__(
        self, cloud: Cloud, methods: Sequence[Handler], actions: Mapping[str, Handler]
    ) -> None:
        self._cloud = cloud
        self._methods = methods
        self._actions = actions

    def __call__(self, req: falcon.Request, resp: falcon.Response, **params: str) -> None:
        """Falcon's responder."""
        call = self._call(req, resp)
        if any("\0" in value for value in params.values()):
            raise NotFound(errors.SENTENCES[404])
        if req.content_type and req.content_type.split(";")[0].strip().lower() not in _JSON:
            errors.send(resp, 415, "Unsupported Content-Type")
            return
        if req.method in ("POST", "PUT"):
            call.body = _body(req)
        method = self._method(call)
        _check_project(req, call)
        described = operation_of(method)
        status = described.status.at(call.version) or 200
        if req.method not in wsgi.ONLY_LOOK:
            call.ctxt.asked = {
                "method": req.method,
                "path": req.path,
                "at": wsgi.received_at(req).isoformat(),
                "status": status,
            }
        try:
            result = _guarded(call, described, method, params, req.method == "GET")
        except tuple(described.errors) as error:
            wanted = next(kind for kind in described.errors if isinstance(error, kind))
            raise described.errors[wanted](error.message, **error.details) from error
        _send(resp, result, status)

    def _call(self, req: falcon.Request, resp: falcon.Response) -> Call:
        version = microversions.negotiate(
            req.get_header(microversions.HEADER), req.get_header(microversions.LEGACY_HEADER)
        )
        number = microversions.text(version)
        resp.set_header(microversions.HEADER, f"{microversions.SERVICE} {number}")
        resp.set_header(microversions.LEGACY_HEADER, number)
        resp.append_header("Vary", _VARY)
        call = Call(
            cloud=self._cloud,
            ctxt=wsgi.context(req),
            version=version,
            query=Query.parse(req.query_string),
            links=links_of(req, self._cloud.conf.api.compute_link_prefix),
        )
        # The policy says who is an administrator, and the conductor goes by it.
        call.ctxt.is_admin = call.is_admin
        return call

    def _method(self, call: Call) -> Handler:
        if self._actions:
            return self._action(call)
        for method in self._methods:
            if operation_of(method).serves(call.version):
                return method
        raise NotFound(errors.SENTENCES[404])

    def _action(self, call: Call) -> Handler:
        if not isinstance(call.body, dict) or len(call.body) != 1:
            raise Invalid("Malformed request body")
        name = next(iter(call.body))
        method = self._actions.get(name)
        if method is None:
            raise Invalid(f"There is no such action: {name}")
        if not operation_of(method).serves(call.version):
            raise NotFound(errors.SENTENCES[404])
        return method


def _check_project(req: falcon.Request, call: Call) -> None:
    """Raise Invalid, in Nova's words, where the path names another project than the token."""
    named = req.env.get(PROJECT)
    if named is not None and named != call.ctxt.project_id:
        raise Invalid(
            f"Malformed request URL: URL's project_id '{named}' doesn't match Context's "
            f"project_id '{call.ctxt.project_id}'"
        )


def _guarded(
    call: Call, described: Operation, method: Handler, params: Params, reads: bool
) -> Any:
    target = described.on(call, params) if described.on else None
    if described.rule is not None:
        call.check(described.rule, target)
    if described.body is not None:
        validate = described.body.at(call.version)
        if validate is not None:
            validate(call.body)
    allowed = described.query or (_NO_QUERY if reads else None)
    if call.query and allowed is not None:
        validate = allowed.at(call.version)
        if validate is not None:
            validate(call.query)
    return method(call, **params)


def _body(req: falcon.Request) -> Any:
    """The JSON value, None where there is no body. Raises Invalid, TooLarge."""
    if not req.content_length and not bodies.in_chunks(req):
        return None
    return bodies.json_body(req)


def _send(resp: falcon.Response, result: Any, status: int) -> None:
    reply = result if isinstance(result, Reply) else Reply(result)
    resp.status = _http_status(reply.status or status)
    for name, value in reply.headers.items():
        resp.set_header(name, value)
    if reply.body is not None:
        resp.content_type = "application/json"
        resp.data = orjson.dumps(reply.body)


@functools.cache
def _http_status(code: int) -> str:
    return str(falcon.code_to_http_status(code))
