"""A request as the clustering API's resources see it, and what the API adds to the guard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import falcon

from api import versioned, words
from api.clustering.microversions import VERSIONS
from api.query import Query
from api.versioned import VersionedApi
from common.errors import Invalid
from db.reads.groups.groups import Kind
from db.reads.keyset import Page
from db.reads.volumes.block_storage import Filter
from web import wsgi
from web.guard import Describe, Params, Reply, Target
from web.schemas import NUMBERS_IN_STRINGS, Validator, Words

_WORDS = Words(words.of_body, standard=NUMBERS_IN_STRINGS)
MAX_LIMIT = 1000

operation = Describe(_WORDS, _WORDS, oldest="1.0")


@dataclass(kw_only=True)
class Call(versioned.Call):
    """A request that is being answered."""

    root: str
    """The URL under which the client reached the API, with its version."""
    token: str = ""
    """The token of the request."""

    def expect_query(self, validate: Validator | None) -> None:
        """Do nothing: what lists don't know they ignore."""

    def find(self, kind: Kind[Any], named: str) -> Any:
        """Return the record that a path or a body names. Raises NotFound, Invalid."""
        return self.read(kind.find, named, self.reach)

    def listed(self, kind: Kind[Any], *equal: str, **more: Any) -> list[Any]:
        """Return a page of records, by the query string. Raises Invalid, Forbidden."""
        filters = {name: value for name in equal if (value := self.query.last(name)) is not None}
        everybody = self.query.boolean("global_project")
        if everybody:
            self.check("clusters:global")
        wanted = Filter(None if everybody else self.project, {**filters, **more})
        limit, marker = self.query.page(MAX_LIMIT)
        found: list[Any] = self.read(
            kind.listing, wanted, self._order(kind), Page(limit=limit, marker=marker)
        )
        return found

    def _order(self, kind: Kind[Any]) -> list[tuple[str, bool]]:
        """Return (name, descending) of each sort key: `name:desc,created_at`."""
        text = self.query.last("sort")
        if not text:
            # As in Senlin: as they were made.
            return [("created_at", False)]
        found: dict[str, bool] = {}
        for part in text.split(","):
            key, _, turn = part.strip().partition(":")
            if key not in kind.sortable:
                raise Invalid(f"Unsupported sort key '{key[:255]}' for 'sort'.")
            if turn not in ("", "asc", "desc"):
                raise Invalid(f"Unsupported sort dir '{turn[:255]}' for 'sort'.")
            found.setdefault(key, turn == "desc")
        return list(found.items())

    def accepted(self, body: Any, number: int) -> Reply:
        """Return the answer to a request that an operation carries out."""
        return Reply(body, 202, {"Location": f"{self.root}/actions/{number}"})


def the(kind: Kind[Any]) -> Callable[[Call, Params], Target]:
    """Return an operation's `on` that puts what the path names in place of its `{noun}_id`."""

    def on(call: Call, params: Params) -> Target:
        found = params[kind.noun] = call.find(kind, params.pop(f"{kind.noun}_id"))
        return {"project_id": found.project_id}

    return on


class ClusteringApi(VersionedApi[Call]):
    """The clustering API, for `web.guard`."""

    versions = VERSIONS
    with_body = frozenset({"POST", "PUT", "PATCH"})

    def made(self, req: falcon.Request, version: int) -> Call:
        """Return the request, without its body."""
        ctxt = wsgi.context(req)
        return Call(
            cloud=self.cloud,
            ctxt=ctxt,
            version=version,
            query=Query.parse(req.query_string),
            root=f"{req.forwarded_prefix.rstrip('/')}/v1",
            token=req.get_header("X-Auth-Token") or "",
        )
