"""A request as the Block Storage API's resources see it, and what the API adds to the guard."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

import falcon
import sqlalchemy as sa
from oslo_config import cfg

from api import words
from api.query import Query
from api.volume.microversions import VERSIONS
from api.volume.paths import PROJECT
from common.context import RequestContext
from common.errors import Invalid, NotFound
from conductor.rpc import ConductorRpc
from db.reading import reading
from web import bodies, wsgi
from web.guard import Describe, Operation, Params, Target, send_reply
from web.policy import Enforcer
from web.schemas import NUMBERS_IN_STRINGS, Validator, Words

P = ParamSpec("P")
T = TypeVar("T")

_WORDS = Words(words.of_body, standard=NUMBERS_IN_STRINGS)

operation = Describe(_WORDS, _WORDS, oldest="3.0")


@dataclass(frozen=True)
class Cloud:
    """What resources use: options, policy, the database (read-only), the conductor."""

    conf: cfg.ConfigOpts
    enforcer: Enforcer
    engine: sa.Engine
    conductor: ConductorRpc


@dataclass
class Call:
    """A request that is being answered."""

    cloud: Cloud
    ctxt: RequestContext
    version: int
    query: Query
    root: str
    """The URL under which the client reached the API, with its version."""
    body: Any = None
    if_match: str | None = None
    """The header."""

    @property
    def content(self) -> Any:
        """The body, for the guard."""
        return self.body

    def expect_body(self, validate: Validator) -> None:
        """Raise Invalid unless the body is well formed."""
        validate(self.body)

    def expect_query(self, validate: Validator | None) -> None:
        """Do nothing: Cinder ignores what it doesn't know in a query."""

    @functools.cached_property
    def is_admin(self) -> bool:
        """Whether the user is an administrator to the policy."""
        return self.allows("context_is_admin")

    @property
    def project(self) -> str:
        """The project of the token."""
        return self.ctxt.project_id or ""

    @property
    def reach(self) -> str | None:
        """Whose records a request by their id reaches; None: everybody's."""
        return None if self.is_admin else self.project

    @property
    def conductor(self) -> ConductorRpc:
        """The client of the conductor, which makes all changes."""
        return self.cloud.conductor

    def read(
        self, query: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return the result of one of `db.reads`, on a connection of its own."""
        with reading(self.cloud.engine) as connection:
            return query(connection, *args, **kwargs)

    def allows(self, rule: str, target: Mapping[str, Any] | None = None) -> bool:
        """Return whether the policy allows it."""
        return self.cloud.enforcer.allows(self.ctxt, rule, target)

    def check(self, rule: str, target: Mapping[str, Any] | None = None) -> None:
        """Raise Forbidden unless the policy allows it."""
        self.cloud.enforcer.check(self.ctxt, rule, target)


def the(noun: str, find: Callable[[Call, str], Any]) -> Callable[[Call, Params], Target]:
    """Return an operation's `on` that puts what the path names in place of its `{noun}_id`.

    The policy asks for its owner. `find` raises NotFound.
    """

    def on(call: Call, params: Params) -> Target:
        found = params[noun] = find(call, params.pop(f"{noun}_id"))
        return {"project_id": found.project_id}

    return on


class VolumeApi:
    """The Block Storage API, for `web.guard`."""

    default_query = None
    body_before_policy = True

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def call(self, req: falcon.Request, resp: falcon.Response, params: Params) -> Call:
        """Read the request. Raises what Cinder refuses before it knows the operation."""
        version = VERSIONS.negotiate(req, resp)
        named = req.env.get(PROJECT)
        below = f"/{named}" if named else ""
        call = Call(
            cloud=self._cloud,
            ctxt=wsgi.context(req),
            version=version,
            query=Query.parse(req.query_string),
            root=f"{req.forwarded_prefix.rstrip('/')}/v3{below}",
            if_match=req.get_header("If-Match"),
        )
        call.ctxt.is_admin = call.is_admin
        if any("\0" in value for value in params.values()):
            raise NotFound
        if named is not None and named != call.ctxt.project_id:
            raise Invalid("Malformed request url")
        if req.method in ("POST", "PUT"):
            call.body = _body(req)
        return call

    def check_request(
        self, req: falcon.Request, call: Call, operation: Operation, status: int
    ) -> None:
        """Note how it was asked."""
        if req.method not in wsgi.ONLY_LOOK:
            call.ctxt.asked = {
                "method": req.method,
                "path": req.path,
                "at": wsgi.received_at(req).isoformat(),
                "status": status,
            }

    def check(self, call: Call, rule: str, target: Target) -> None:
        """Raise Forbidden unless the policy allows it; default target: the user's project."""
        call.check(rule, target)

    def send(self, resp: falcon.Response, call: Call, result: Any, status: int) -> None:
        """Answer with a body or a Reply."""
        send_reply(resp, result, status)


def _body(req: falcon.Request) -> Any:
    """Return the JSON value, None where there is no body. Raises Invalid, TooLarge."""
    if not req.content_length and not bodies.in_chunks(req):
        return None
    return bodies.json_body(req)
