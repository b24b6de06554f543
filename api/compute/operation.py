"""What the compute API adds to the guard: how Nova reads requests and answers them."""

from __future__ import annotations

from typing import Any

import falcon

from api import words
from api.compute.call import Call, Cloud
from api.compute.links import PROJECT, links_of
from api.compute.microversions import VERSIONS
from api.compute.policies import named
from api.query import Query
from common.errors import Invalid, NotFound
from web import bodies, wsgi
from web.errors import UnsupportedMedia
from web.guard import Describe, Operation, Params, Target, send_reply
from web.schemas import versioned

_JSON = ("application/json", "application/vnd.openstack.compute+json", "text/plain")

operation = Describe(words.BODY, words.QUERY, oldest="2.1", full=named)


class ComputeApi:
    """The compute API, for `web.guard`."""

    body_before_policy = False
    #: where an operation doesn't say: anything, nothing since 2.102
    default_query = versioned(
        {"2.1": None, "2.102": {"type": "object", "additionalProperties": False}}, words.QUERY
    )

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def call(self, req: falcon.Request, resp: falcon.Response, params: Params) -> Call:
        """Read the request. Raises what Nova refuses before it knows the operation."""
        version = VERSIONS.negotiate(req, resp)
        call = Call(
            cloud=self._cloud,
            ctxt=wsgi.context(req),
            version=version,
            query=Query.parse(req.query_string),
            links=links_of(req, self._cloud.conf.api.compute_link_prefix),
        )
        # The policy decides who is an administrator; the conductor relies on this flag.
        call.ctxt.is_admin = call.is_admin
        if any("\0" in value for value in params.values()):
            raise NotFound
        if req.content_type and req.content_type.split(";")[0].strip().lower() not in _JSON:
            raise UnsupportedMedia("Unsupported Content-Type")
        if req.method in ("POST", "PUT"):
            call.body = _body(req)
        return call

    def check_request(
        self, req: falcon.Request, call: Call, operation: Operation, status: int
    ) -> None:
        """Note how it was asked. Raises Invalid where the path names another project."""
        named = req.env.get(PROJECT)
        if named is not None and named != call.ctxt.project_id:
            raise Invalid(
                f"Malformed request URL: URL's project_id '{named}' doesn't match Context's "
                f"project_id '{call.ctxt.project_id}'"
            )
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
