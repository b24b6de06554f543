"""A request as the compute API's resources see it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa
from oslo_config import cfg

from api.compute.links import Links
from api.compute.policies import named
from api.query import Query
from common.context import RequestContext
from common.projects import Projects
from conductor.rpc import ConductorRpc
from db.reading import reading
from db.reads.servers.servers import Server
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


@dataclass
class Call:
    """A request that is being answered."""

    cloud: Cloud
    ctxt: RequestContext
    version: int
    """The minor microversion."""
    query: Query
    links: Links
    body: Any = None
    found: Server | None = None
    """The server that the path names, where it names one."""

    @property
    def content(self) -> Any:
        """The body, for the guard."""
        return self.body

    def expect_body(self, validate: Validator) -> None:
        """Raise Invalid unless the body is well formed."""
        validate(self.body)

    def expect_query(self, validate: Validator | None) -> None:
        """Raise Invalid unless the query string, where there is one, is well formed."""
        if validate is not None and self.query:
            validate(self.query)

    @functools.cached_property
    def is_admin(self) -> bool:
        """Whether the user is an administrator to the policy (Nova's `context.is_admin`)."""
        return self.allows("context_is_admin")

    @property
    def server(self) -> Server:
        """The server that the path names."""
        if self.found is None:
            raise LookupError("the operation names no server")
        return self.found

    @property
    def conductor(self) -> ConductorRpc:
        """The client of the conductor, which makes all changes."""
        return self.cloud.conductor

    def read(
        self, query: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """See `Cloud.read`."""
        return self.cloud.read(query, *args, **kwargs)

    @property
    def max_limit(self) -> int:
        """The maximum number of items in a page."""
        limit: int = self.cloud.conf.api.max_limit
        return limit

    def allows(self, rule: str, target: Mapping[str, Any] | None = None) -> bool:
        """Return whether the policy allows it."""
        return self.cloud.enforcer.allows(self.ctxt, named(rule), target)

    def check(self, rule: str, target: Mapping[str, Any] | None = None) -> None:
        """Raise Forbidden unless the policy allows it."""
        self.cloud.enforcer.check(self.ctxt, named(rule), target)
