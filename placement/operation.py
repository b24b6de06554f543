"""The guard of a door: microversion → accept and content type → policy → the operation itself.

An operation takes a Call and returns an Answer; it knows no Falcon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Protocol
from urllib.parse import parse_qsl

import falcon
import orjson
from oslo_config import cfg

from common.context import RequestContext
from common.errors import Invalid, NotFound
from placement.answers import http_date
from placement.db import sequence
from placement.db.engine import Database
from placement.errors import MethodNotAllowed, NotAcceptable, UnsupportedMedia
from placement.follower import Follower
from placement.ledger import Ledger
from placement.microversions import Version
from placement.policies import Policy
from placement.schemas.common import Versioned, at, check
from web import bodies

JSON = "application/json"
_MISSING: Mapping[int, Callable[[], Exception]] = {
    404: lambda: NotFound(""),
    405: lambda: MethodNotAllowed("The method specified is not allowed for this resource."),
}


@dataclass(frozen=True, slots=True)
class Services:
    """What the resources work with."""

    conf: cfg.ConfigOpts
    database: Database
    follower: Follower
    ledger: Ledger
    policy: Policy


@dataclass(frozen=True, slots=True)
class Answer:
    """What an operation says.

    `body` is the JSON value (None: no body) or `raw` its text, `modified` the seconds since the
    epoch of the last change (None: now) that is told from microversion 1.15 on; `dated=False`
    leaves it out.
    """

    body: Any = None
    raw: bytes | None = None
    status: int = 200
    location: str | None = None
    modified: int | None = None
    dated: bool = True


#: what there is to say when all went well and there is nothing to tell
DONE = Answer(status=204, dated=False)


@dataclass(slots=True)
class Call:
    """One request, as an operation sees it."""

    version: Version
    context: RequestContext
    script_name: str
    origin: str
    query: Mapping[str, list[str]]
    read_body: Callable[[], bytes]
    body_schemas: Versioned | None = field(default=None, repr=False)

    def at_least(self, major: int, minor: int) -> bool:
        """Whether the client speaks this microversion or a newer one."""
        return self.version >= (major, minor)

    def body(self) -> Any:
        """Return the JSON body. Raises Invalid unless it is as the schema says, TooLarge."""
        schema = at(self.body_schemas or {self.version: None}, self.version)
        assert schema is not None
        try:
            value = orjson.loads(self.read_body())
        except orjson.JSONDecodeError as error:
            raise Invalid(f"Malformed JSON: {error}") from error
        # A ratio may be larger than any integer; the schemas limit those.
        bodies.check(value, large_numbers=True)
        check(value, schema, "JSON does not validate")
        return value

    def last(self, name: str) -> str | None:
        """Return the last value of a query parameter, None when it isn't there."""
        values = self.query.get(name)
        return values[-1] if values else None


class _Resource(Protocol):
    services: Services


Operation = Callable[..., Answer]


def operation(
    rule: str | None,
    *,
    since: Version = (1, 0),
    otherwise: int = 404,
    body: Versioned | None = None,
    query: Versioned | None = None,
    accept: bool = False,
) -> Callable[[Operation], Callable[..., None]]:
    """Make a Falcon responder of an operation.

    It exists from microversion `since` on and answers `otherwise` before. `rule` is asked before
    it runs (None: it asks by itself). `body` and `query` are its schemas; `accept`: the client
    must accept JSON.
    """

    def made(run: Operation) -> Callable[..., None]:
        @wraps(run)
        def respond(
            self: _Resource, req: falcon.Request, resp: falcon.Response, **path: str
        ) -> None:
            version: Version = req.context.version
            if version < since:
                raise _MISSING[otherwise]()
            if body is not None and at(body, version) is not None:
                _require_json(req)
            if accept and not req.client_accepts(JSON):
                raise NotAcceptable(f"Only {JSON} is provided")
            if rule is not None:
                self.services.policy.require(req.context.ctxt, rule)
            call = _call(req, body, self.services.conf.placement.max_request_body_size)
            if query is not None:
                _check_query(call, query)
            _send(resp, call, run(self, call, **path))

        return respond

    return made


def _call(req: falcon.Request, body: Versioned | None, limit: int) -> Call:
    def read_body() -> bytes:
        return bodies.read(req, limit)

    query: dict[str, list[str]] = {}
    if req.query_string:
        try:
            pairs = parse_qsl(req.query_string, keep_blank_values=True, errors="strict")
        except UnicodeDecodeError as error:
            raise Invalid(f"Invalid query string parameters: {error}") from error
        for name, value in pairs:
            query.setdefault(name, []).append(value)
    return Call(
        req.context.version,
        req.context.ctxt,
        req.root_path or "",
        f"{req.forwarded_scheme}://{req.forwarded_host}",
        query,
        read_body,
        body,
    )


def _check_query(call: Call, schemas: Versioned) -> None:
    values = {name: values[-1] for name, values in call.query.items()}
    schema = at(schemas, call.version)
    assert schema is not None
    check(values, schema, "Invalid query string parameters")


def _require_json(req: falcon.Request) -> None:
    given = (req.content_type or "").partition(";")[0].strip()
    if given != JSON:
        raise UnsupportedMedia(
            f"The media type {given or 'None'} is not supported, use {JSON}", given=given
        )


def _send(resp: falcon.Response, call: Call, answer: Answer) -> None:
    resp.status = falcon.code_to_http_status(answer.status)
    if answer.body is not None:
        resp.content_type = JSON
        resp.data = orjson.dumps(answer.body, option=orjson.OPT_NON_STR_KEYS)
    if answer.raw is not None:
        resp.content_type = JSON
        resp.data = answer.raw
    if answer.location is not None:
        resp.set_header("location", f"{call.origin}{answer.location}")
    if call.version >= (1, 15) and answer.dated:
        moment = sequence.seconds() if answer.modified is None else answer.modified
        resp.set_header("last-modified", http_date(moment))
        resp.set_header("cache-control", "no-cache")
