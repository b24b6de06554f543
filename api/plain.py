"""What the APIs without microversions add to the guard: image and network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import falcon

from common.context import RequestContext
from web import bodies, queries, wording, wsgi
from web.guard import Describe, Operation, Params, Target, responders_of, send_reply
from web.policy import Enforcer
from web.schemas import Validator, Words

_WORDS = Words(wording.sentence)

operation = Describe(_WORDS, _WORDS, oldest="0.0")


@dataclass(frozen=True)
class Call:
    """A request that is being answered."""

    ctxt: RequestContext
    root: str
    """The URL under which the client reached the API."""
    path: str
    pairs: list[tuple[str, str]]
    """The (name, value) pairs of the query string, those without a value too."""
    version: int = 0
    content: None = None
    request: falcon.Request | None = None

    def body(self) -> Any:
        """Return the JSON value of the request. Raises Invalid, TooLarge."""
        return bodies.json_body(cast(falcon.Request, self.request))

    def expect_body(self, validate: Validator) -> None:
        """Do nothing: each change reads its body in the real service's grammar."""

    def expect_query(self, validate: Validator | None) -> None:
        """Do nothing: each list reads its query in the real service's grammar."""


class PlainApi:
    """An API without microversions, for `web.guard`."""

    default_query = None
    body_before_policy = False

    def __init__(self, policy: Enforcer) -> None:
        self._policy = policy

    def call(self, req: falcon.Request, resp: falcon.Response, params: Params) -> Call:
        """Return the request."""
        pairs = queries.pairs(req.query_string)
        return Call(wsgi.context(req), req.forwarded_prefix, req.path, pairs, request=req)

    def check_request(
        self, req: falcon.Request, call: Call, operation: Operation, status: int
    ) -> None:
        """Admit all."""

    def check(self, call: Call, rule: str, target: Target) -> None:
        """Raise Forbidden unless the policy allows it; default target: the user's project."""
        self._policy.check(call.ctxt, rule, target)

    def send(self, resp: falcon.Response, call: Call, result: Any, status: int) -> None:
        """Answer with a body or a Reply."""
        send_reply(resp, result, status)


def resources(policy: Enforcer, routes: Iterable[tuple[str, object]]) -> Mapping[str, object]:
    """Falcon's resources by path, of those whose methods are operations."""
    api = PlainApi(policy)
    return {path: responders_of(api, resource) for path, resource in routes}
