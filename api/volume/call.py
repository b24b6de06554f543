"""A request as the Block Storage API's resources see it, and what the API adds to the guard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import falcon

from api import versioned, words
from api.query import Query
from api.versioned import VersionedApi
from api.volume.microversions import VERSIONS
from api.volume.paths import PROJECT
from common.errors import Invalid
from web import wsgi
from web.guard import Describe, Params, Target
from web.schemas import NUMBERS_IN_STRINGS, Validator, Words

_WORDS = Words(words.of_body, standard=NUMBERS_IN_STRINGS)

operation = Describe(_WORDS, _WORDS, oldest="3.0")


@dataclass(kw_only=True)
class Call(versioned.Call):
    """A request that is being answered."""

    root: str
    """The URL under which the client reached the API, with its version."""
    if_match: str | None = None
    """The header."""

    def expect_query(self, validate: Validator | None) -> None:
        """Do nothing: Cinder ignores what it doesn't know in a query."""


def the(noun: str, find: Callable[[Call, str], Any]) -> Callable[[Call, Params], Target]:
    """Return an operation's `on` that puts what the path names in place of its `{noun}_id`.

    The policy asks for its owner. `find` raises NotFound.
    """

    def on(call: Call, params: Params) -> Target:
        found = params[noun] = find(call, params.pop(f"{noun}_id"))
        return {"project_id": found.project_id}

    return on


class VolumeApi(VersionedApi[Call]):
    """The Block Storage API, for `web.guard`."""

    versions = VERSIONS
    body_before_policy = True

    def made(self, req: falcon.Request, version: int) -> Call:
        """Return the request, without its body."""
        named = req.env.get(PROJECT)
        below = f"/{named}" if named else ""
        return Call(
            cloud=self.cloud,
            ctxt=wsgi.context(req),
            version=version,
            query=Query.parse(req.query_string),
            root=f"{req.forwarded_prefix.rstrip('/')}/v3{below}",
            if_match=req.get_header("If-Match"),
        )

    def refuse(self, req: falcon.Request, call: Call) -> None:
        """Raise Invalid where the path names another project."""
        named = req.env.get(PROJECT)
        if named is not None and named != call.ctxt.project_id:
            raise Invalid("Malformed request url")
