"""What the compute API adds to the guard: how Nova reads requests and answers them."""

from __future__ import annotations

import falcon

from api import words
from api.compute.call import Call
from api.compute.links import PROJECT, links_of
from api.compute.microversions import VERSIONS
from api.compute.policies import named
from api.query import Query
from api.versioned import VersionedApi
from common.errors import Invalid
from web import wsgi
from web.errors import UnsupportedMedia
from web.guard import Describe, Operation
from web.schemas import versioned

_JSON = ("application/json", "application/vnd.openstack.compute+json", "text/plain")

operation = Describe(words.BODY, words.QUERY, oldest="2.1", full=named)


class ComputeApi(VersionedApi[Call]):
    """The compute API, for `web.guard`."""

    versions = VERSIONS
    #: where an operation doesn't say: anything, nothing since 2.102
    default_query = versioned(
        {"2.1": None, "2.102": {"type": "object", "additionalProperties": False}}, words.QUERY
    )

    def made(self, req: falcon.Request, version: int) -> Call:
        """Return the request, without its body."""
        return Call(
            cloud=self.cloud,
            ctxt=wsgi.context(req),
            version=version,
            query=Query.parse(req.query_string),
            links=links_of(req, self.cloud.conf.api.compute_link_prefix),
            key=req.get_header("Idempotency-Key"),
        )

    def refuse(self, req: falcon.Request, call: Call) -> None:
        """Raise UnsupportedMedia for a body that isn't JSON."""
        if req.content_type and req.content_type.split(";")[0].strip().lower() not in _JSON:
            raise UnsupportedMedia("Unsupported Content-Type")

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
        super().check_request(req, call, operation, status)
