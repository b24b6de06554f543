"""What every request passes, before its path is looked at: the microversion."""

from __future__ import annotations

import falcon

from common import digits
from common.errors import Invalid
from placement.microversions import VERSIONS

_METHODS = ("GET", "POST", "PUT", "DELETE")


class MicroversionMiddleware:
    """Falcon middleware: negotiates the microversion, which every answer names, errors too."""

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Put the microversion on the context. Raises Invalid, NotAcceptable."""
        req.context.version = VERSIONS.negotiate(req, resp)
        length = req.env.get("CONTENT_LENGTH")
        announced = digits.number(length, 1) if length else 0
        if announced is None:
            raise Invalid("content-length header must be an integer")
        if announced and not req.env.get("CONTENT_TYPE"):
            raise Invalid("content-type header required when content-length > 0")

    def process_resource(
        self, req: falcon.Request, resp: falcon.Response, resource: object, params: object
    ) -> None:
        """Refuse OPTIONS, which Falcon would answer by itself."""
        if req.method == "OPTIONS" and resource is not None:
            raise falcon.HTTPMethodNotAllowed(
                [method for method in _METHODS if hasattr(resource, f"on_{method.lower()}")]
            )
