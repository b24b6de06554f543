"""A request as the clustering API's resources see it, and what the API adds to the guard."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import falcon

from api import versioned, words
from api.clustering.microversions import VERSIONS
from api.query import Query
from api.versioned import VersionedApi
from common.errors import Invalid, TooLarge
from db.reads.groups.groups import Kind
from db.reads.keyset import Page
from db.reads.volumes.block_storage import Filter
from web import bodies, wsgi
from web.guard import Describe, Params, Reply, Target
from web.schemas import NUMBERS_IN_STRINGS, Validator, Words

_WORDS = Words(words.of_body, standard=NUMBERS_IN_STRINGS)
MAX_LIMIT = 1000
#: what every list takes beside its filters
_PAGING = ("limit", "marker", "sort", "global_project")

operation = Describe(_WORDS, _WORDS, oldest="1.0")


@dataclass(kw_only=True)
class Call(versioned.Call):
    """A request that is being answered."""

    root: str
    """The URL under which the client reached the API, with its version."""
    token: str = ""
    """The token of the request."""
    url: str = ""
    """The URL of the request, without its query."""
    next_page: str | None = None
    """The URL of the rest of a list that is longer than a page may be."""

    def expect_query(self, validate: Validator | None) -> None:
        """Do nothing: lists check it, and others ignore what they don't know."""

    def find(self, kind: Kind[Any], named: str) -> Any:
        """Return the record that a path or a body names. Raises NotFound, Invalid."""
        return self.read(kind.find, named, self.reach)

    def since(self, version: int, **keys: Any) -> dict[str, Any]:
        """Return keys of an answer that it has since a version."""
        return keys if self.version >= version else {}

    def filters(
        self, *names: str, paging: Collection[str] = _PAGING, **known: Collection[str]
    ) -> dict[str, tuple[str, ...]]:
        """Return filter → its values: what has any is wanted; ``known``: those that may have
        certain values only. Raises Invalid for what lists don't know, as Senlin does."""
        for name in self.query:
            if name not in (*names, *known, *paging):
                raise Invalid(f"Invalid parameter {name[:255]}")
        for name, values in known.items():
            for value in self.query.get(name, ()):
                if value not in values:
                    raise Invalid(f"Field value {value[:255]} is invalid")
        return {name: tuple(self.query[name]) for name in (*names, *known) if name in self.query}

    def listed(self, kind: Kind[Any], wanted: Mapping[str, Any]) -> list[Any]:
        """Return a page of records with these values. Raises Invalid, Forbidden."""
        # As in Senlin: as they were made.
        return self.page_of(kind.listing, kind.sortable, wanted, "created_at")

    def page_of(
        self,
        listing: Callable[..., list[Any]],
        sortable: Collection[str],
        wanted: Mapping[str, Any],
        first: str,
        marked: Callable[[str], str | int] = str,
    ) -> list[Any]:
        """Return a page of what has these values, by the query string, sorted by `first` unless
        that says how; `marked` checks a marker. Raises Invalid, Forbidden, MarkerNotFound."""
        everybody = self.query.boolean("global_project")
        if everybody:
            self.check("clusters:global")
        where = Filter(None if everybody else self.project, wanted)
        order = self.order(sortable) or [(first, False)]
        limit, marker = self.query.page(MAX_LIMIT)
        page = Page(limit=limit, marker=None if marker is None else marked(marker))
        found = self.read(listing, where, order, page)
        if len(found) == MAX_LIMIT:
            after = urlencode({**self.query, "marker": found[-1].id}, doseq=True)
            self.next_page = f"{self.url}?{after}"
        return found

    def order(self, sortable: Collection[str]) -> list[tuple[str, bool]]:
        """Return (name, descending) of each sort key: `name:desc,created_at`."""
        found: dict[str, bool] = {}
        for part in filter(None, (self.query.last("sort") or "").split(",")):
            key, _, turn = part.strip().partition(":")
            if key not in sortable:
                raise Invalid(f"Unsupported sort key '{key[:255]}' for 'sort'.")
            if turn not in ("", "asc", "desc"):
                raise Invalid(f"Unsupported sort dir '{turn[:255]}' for 'sort'.")
            found.setdefault(key, turn == "desc")
        return list(found.items())

    def accepted(self, body: Any, number: int) -> Reply:
        """Return the answer to a request that an operation carries out."""
        return Reply(body, 202, {"Location": f"{self.root}/actions/{number}"})


def stripped(name: str | None) -> str | None:
    """Return a name without the spaces around it, with which no path would find it."""
    return None if name is None else name.strip()


def changes(*, name: str | None, **values: Any) -> dict[str, Any]:
    """Return what an update names. Raises Invalid, as Senlin does, where that is nothing."""
    asked = {"name": stripped(name), **values}
    named = {key: value for key, value in asked.items() if value is not None}
    if not named:
        raise Invalid("No property needs an update.")
    return named


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
        query = Query.parse(req.query_string)
        for name in _PAGING:
            # As in Senlin: blank is not given.
            if not query.last(name):
                query.pop(name, None)
        return Call(
            cloud=self.cloud,
            ctxt=ctxt,
            version=version,
            query=query,
            root=f"{req.forwarded_prefix.rstrip('/')}/v1",
            token=req.get_header("X-Auth-Token") or "",
            url=f"{req.forwarded_prefix.rstrip('/')}{req.path}",
        )

    def send(self, resp: falcon.Response, call: Call, result: Any, status: int) -> None:
        """Answer, and name the rest of a list: Senlin's have no end, and bodies no links."""
        super().send(resp, call, result, status)
        if call.next_page is not None:
            resp.set_header("Link", f'<{call.next_page}>; rel="next"')


class WebhookApi(ClusteringApi):
    """Webhooks, whose bodies are those of alerts: of any form and size."""

    with_body: frozenset[str] = frozenset()

    def call(self, req: falcon.Request, resp: falcon.Response, params: Params) -> Call:
        """Read the request, and its body if that is JSON."""
        call = super().call(req, resp, params)
        with contextlib.suppress(Invalid, TooLarge):
            call.body = bodies.json_body(req)
        return call
