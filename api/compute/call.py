"""A request as the compute API's resources see it."""

from __future__ import annotations

from dataclasses import dataclass

from api import versioned
from api.compute.links import Links
from api.compute.policies import named
from db.reads.servers.servers import Server
from web.schemas import Validator


@dataclass(kw_only=True)
class Call(versioned.Call):
    """A request that is being answered."""

    links: Links
    key: str | None = None
    """The client's Idempotency-Key, as it was sent."""
    found: Server | None = None
    """The server that the path names, where it names one."""

    def expect_query(self, validate: Validator | None) -> None:
        """Raise Invalid unless the query string, where there is one, is well formed."""
        if validate is not None and self.query:
            validate(self.query)

    def full_name(self, rule: str) -> str:
        """Return the name of a rule in the policy."""
        return named(rule)

    @property
    def server(self) -> Server:
        """The server that the path names."""
        if self.found is None:
            raise LookupError("the operation names no server")
        return self.found

    @property
    def max_limit(self) -> int:
        """The maximum number of items in a page."""
        limit: int = self.cloud.conf.api.max_limit
        return limit
