"""What the APIs with microversions share, compute and volume: a request, and their guard."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import falcon
import sqlalchemy as sa
from oslo_config import cfg

from api.query import Query
from common.clients.projects import Projects
from common.context import RequestContext
from common.errors import NotFound
from conductor.rpc import ConductorRpc
from db.reading import reading
from web import bodies, wsgi
from web.guard import Operation, Params, Target, send_reply
from web.microversions import Microversions, Versioned
from web.policy import Enforcer
from web.schemas import Validator

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Cloud:
    """What resources use: options, policy, the database (read-only), the conductor."""

    conf: cfg.ConfigOpts
    enforcer: Enforcer
    engine: sa.Engine
    conductor: ConductorRpc
    projects: Projects | None = None
    """None: Keystone isn't asked whether projects exist."""

    def read(
        self, query: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return the result of one of `db.reads`, on a connection of its own.

        Raises what `db.reading` does.
        """
        with reading(self.engine) as connection:
            return query(connection, *args, **kwargs)


@dataclass(kw_only=True)
class Call:
    """A request that is being answered."""

    cloud: Cloud
    ctxt: RequestContext
    version: int
    """The minor microversion."""
    query: Query
    body: Any = None

    @property
    def content(self) -> Any:
        """The body, for the guard."""
        return self.body

    def expect_body(self, validate: Validator) -> None:
        """Raise Invalid unless the body is well formed."""
        validate(self.body)

    @functools.cached_property
    def is_admin(self) -> bool:
        """Whether the user is an administrator to the policy (`context.is_admin`)."""
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
        """See `Cloud.read`."""
        return self.cloud.read(query, *args, **kwargs)

    def full_name(self, rule: str) -> str:
        """Return the name of a rule in the policy."""
        return rule

    def allows(self, rule: str, target: Target = None) -> bool:
        """Return whether the policy allows it."""
        return self.cloud.enforcer.allows(self.ctxt, self.full_name(rule), target)

    def check(self, rule: str, target: Target = None) -> None:
        """Raise Forbidden unless the policy allows it."""
        self.cloud.enforcer.check(self.ctxt, self.full_name(rule), target)


C = TypeVar("C", bound=Call)


class VersionedApi(Generic[C]):
    """An API with microversions, for `web.guard`."""

    versions: Microversions
    default_query: Versioned[Validator | None] | None = None
    body_before_policy = False
    with_body: frozenset[str] = frozenset({"POST", "PUT"})
    """Methods whose bodies are read."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud

    def made(self, req: falcon.Request, version: int) -> C:
        """Return the request, without its body."""
        raise NotImplementedError

    def refuse(self, req: falcon.Request, call: C) -> None:
        """Raise what refuses the request before its body is read."""

    def call(self, req: falcon.Request, resp: falcon.Response, params: Params) -> C:
        """Read the request. Raises what refuses it before the operation is known."""
        call = self.made(req, self.versions.negotiate(req, resp))
        # The policy decides who is an administrator; the conductor relies on this flag.
        call.ctxt.is_admin = call.is_admin
        if any("\0" in value for value in params.values()):
            raise NotFound
        self.refuse(req, call)
        if req.method in self.with_body:
            call.body = _body(req)
        return call

    def check_request(
        self, req: falcon.Request, call: C, operation: Operation, status: int
    ) -> None:
        """Note how a change was asked for."""
        if req.method not in wsgi.ONLY_LOOK:
            call.ctxt.asked = {
                "method": req.method,
                "path": req.path,
                "at": wsgi.received_at(req).isoformat(),
                "status": status,
            }

    def check(self, call: C, rule: str, target: Target) -> None:
        """Raise Forbidden unless the policy allows it; default target: the user's project."""
        call.check(rule, target)

    def send(self, resp: falcon.Response, call: C, result: Any, status: int) -> None:
        """Answer with a body or a Reply."""
        send_reply(resp, result, status)


def _body(req: falcon.Request) -> Any:
    """Return the JSON value, None where there is no body. Raises Invalid, TooLarge."""
    if not req.content_length and not bodies.in_chunks(req):
        return None
    return bodies.json_body(req)
