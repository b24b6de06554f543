"""What placement adds to the guard: how it reads requests and sends answers.

An operation takes a Call and returns an Answer; it knows no Falcon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import lru_cache
from typing import Any

import falcon
import orjson
from oslo_config import cfg

from common.context import RequestContext
from common.errors import Invalid
from placement import agents
from placement.db import sequence
from placement.db.engine import Database
from placement.follower import Follower
from placement.ledger import Ledger
from placement.policies import full
from placement.schemas.common import BODY, QUERY
from web import bodies, queries
from web.errors import NotAcceptable, UnsupportedMedia
from web.guard import Describe, Operation, Params, Target
from web.policy import Enforcer
from web.schemas import Validator

JSON = "application/json"
_DATED_SINCE = 15
#: target of rules without an owner
_NOBODY: Mapping[str, Any] = {"project_id": None}

operation = Describe(BODY, QUERY, oldest="1.0", full=full)


@dataclass(frozen=True, slots=True)
class Services:
    """What the resources work with."""

    conf: cfg.ConfigOpts
    database: Database
    follower: Follower
    ledger: Ledger
    policy: Enforcer
    page: int = 5_000
    """Consumers in one answer that lists all allocations."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an operation returns.

    `body` is the JSON value (None: no body) or `raw` its text. `modified` is the time of the last
    change in seconds since the epoch (None: now), which answers have from microversion 1.15 on;
    `dated=False` leaves it out.
    """

    body: Any = None
    raw: bytes | None = None
    status: int = 200
    location: str | None = None
    modified: int | None = None
    dated: bool = True


#: success without a body
DONE = Answer(status=204, dated=False)


@dataclass(slots=True)
class Call:
    """One request, as an operation sees it."""

    version: int
    context: RequestContext
    script_name: str
    origin: str
    query: Mapping[str, list[str]]
    read_body: Callable[[], bytes]
    query_string: str = ""
    provider: str | None = None
    """The UUID of the provider that the path names."""
    validate: Validator | None = field(default=None, repr=False)

    @property
    def content(self) -> None:
        """Return None: no body names an action."""

    def expect_body(self, validate: Validator) -> None:
        """Validate the body when the operation reads it, for some after a look-up."""
        self.validate = validate

    def expect_query(self, validate: Validator | None) -> None:
        """Read the query string. Raises Invalid."""
        if self.query_string:
            self.query = _query(self.query_string)
        if validate is not None:
            validate({name: values[-1] for name, values in self.query.items()})

    def body(self) -> Any:
        """Return the JSON body. Raises Invalid unless it fits the schema, TooLarge."""
        assert self.validate is not None
        try:
            value = orjson.loads(self.read_body())
        except orjson.JSONDecodeError as error:
            raise Invalid(f"Malformed JSON: {error}") from error
        # A ratio may be larger than any integer; the schemas limit those.
        bodies.check(value, large_numbers=True)
        self.validate(value)
        return value

    def last(self, name: str) -> str | None:
        """Return the last value of a query parameter, None when it isn't there."""
        values = self.query.get(name)
        return values[-1] if values else None


def _query(text: str) -> dict[str, list[str]]:
    try:
        pairs = queries.pairs(text, errors="strict")
    except UnicodeDecodeError as error:
        raise Invalid(f"Invalid query string parameters: {error}") from error
    query: dict[str, list[str]] = {}
    for name, value in pairs:
        query.setdefault(name, []).append(value)
    return query


class PlacementApi:
    """The Placement API, for `web.guard`."""

    default_query = None
    body_before_policy = False

    def __init__(self, services: Services) -> None:
        self._policy, self._database = services.policy, services.database
        self._limit = services.conf.placement.max_request_body_size

    def call(self, req: falcon.Request, resp: falcon.Response, params: Params) -> Call:
        """Return the request; the middleware knows its version."""
        return Call(
            version=req.context.version,
            context=req.context.ctxt,
            script_name=req.root_path or "",
            origin=f"{req.forwarded_scheme}://{req.forwarded_host}",
            query={},
            read_body=lambda: bodies.read(req, self._limit),
            query_string=req.query_string,
            provider=params.get("uuid"),
        )

    def check_request(
        self, req: falcon.Request, call: Call, operation: Operation, status: int
    ) -> None:
        """Raise UnsupportedMedia, NotAcceptable unless both sides speak JSON."""
        if operation.body is not None and operation.body.at(call.version) is not None:
            given = (req.content_type or "").partition(";")[0].strip()
            if given != JSON:
                raise UnsupportedMedia(
                    f"The media type {given or 'None'} is not supported, use {JSON}", given=given
                )
        if operation.accept and not req.client_accepts(JSON):
            raise NotAcceptable(f"Only {JSON} is provided")

    def check(self, call: Call, rule: str, target: Target) -> None:
        """Raise Forbidden unless the policy allows it; an agent's user writes its hosts only."""
        self._policy.check(call.context, rule, _NOBODY)
        if agents.hosts_of(call.context) is not None:
            self._database.read(lambda c: agents.check(call.context, rule, c, call.provider))

    def send(self, resp: falcon.Response, call: Call, result: Answer, status: int) -> None:
        """Send the answer, from 1.15 on with the time of the last change."""
        resp.status = falcon.code_to_http_status(result.status)
        if result.body is not None:
            resp.content_type = JSON
            resp.data = orjson.dumps(result.body, option=orjson.OPT_NON_STR_KEYS)
        if result.raw is not None:
            resp.content_type = JSON
            resp.data = result.raw
        if result.location is not None:
            resp.set_header("location", f"{call.origin}{result.location}")
        if call.version >= _DATED_SINCE and result.dated:
            moment = sequence.seconds() if result.modified is None else result.modified
            resp.set_header("last-modified", _http_date(moment))
            resp.set_header("cache-control", "no-cache")


@lru_cache(maxsize=64)
def _http_date(moment: int) -> str:
    return formatdate(moment, usegmt=True)
