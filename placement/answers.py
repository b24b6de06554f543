"""Around the operations: microversion headers, and errors as the Placement API has them."""

from __future__ import annotations

import html
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import falcon
import orjson

from common import digits
from common.errors import Invalid, MicronovaError, NotFound
from common.log import logger
from placement import microversions
from placement.errors import MethodNotAllowed, api_code, status_of

LOG = logger(__name__)

#: the sentence before an error's own, by status; clients print both
_EXPLANATIONS: Mapping[int, str] = {
    400: "The server could not comply with the request since it is either malformed or "
    "otherwise incorrect.\n\n {detail}  ",
    401: "This server could not verify that you are authorized to access the document you "
    "requested.\n\n {detail}  ",
    403: "Access was denied to this resource.\n\n {detail}  ",
    404: "The resource could not be found.\n\n {detail}  ",
    405: "The method {method} is not allowed for this resource. \n\n {detail}",
    406: "The resource could not be generated that was acceptable to your browser (content of "
    "type application/json. \n\n {detail}",
    409: "There was a conflict when trying to complete your request.\n\n {detail}  ",
    413: "The body of your request was too large for this server.\n\n {detail}  ",
    415: "The request media type {media} is not supported by this server. \n\n {detail}",
    500: "The server has either erred or is incapable of performing the requested "
    "operation.\n\n {detail}  ",
    503: "The server is currently unavailable. Please try again at a later time.\n\n {detail}  ",
}
_CODES_SINCE = (1, 23)
_JSON, _HTML = "application/json", "text/html"
#: what errors are told in, dearest first; to a client that takes neither, as plain text
_TOLD_IN = (_HTML, _JSON)


@lru_cache(maxsize=64)
def http_date(moment: int) -> str:
    """Return seconds since the epoch in HTTP's form."""
    return formatdate(moment, usegmt=True)


class MicroversionMiddleware:
    """Falcon middleware: settles the microversion of a request and tells it in every answer."""

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Put the microversion on the context. Raises Invalid, NotAcceptable."""
        version = microversions.negotiate(req.get_header(microversions.HEADER))
        req.context.version = version
        resp.set_header(
            microversions.HEADER, f"{microversions.SERVICE} {microversions.text(version)}"
        )
        resp.set_header("vary", microversions.HEADER)
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
            allowed = [
                method
                for method in ("GET", "POST", "PUT", "DELETE")
                if hasattr(resource, f"on_{method.lower()}")
            ]
            raise falcon.HTTPMethodNotAllowed(allowed)


def add_error_handlers(app: falcon.App[falcon.Request, falcon.Response]) -> None:
    """Make `app` tell every error in the Placement API's form."""
    app.add_error_handler(Exception, _unexpected)
    app.add_error_handler(falcon.HTTPError, _refused_by_falcon)
    app.add_error_handler(MicronovaError, _refused)


def _unexpected(
    req: falcon.Request, resp: falcon.Response, error: Exception, params: object
) -> None:
    LOG.error("Unexpected error", exc_info=error)
    _tell(req, resp, 500, MicronovaError("Unexpected error; the log has more."))


def _refused(
    req: falcon.Request, resp: falcon.Response, error: MicronovaError, params: object
) -> None:
    _tell(req, resp, status_of(error), error)


def _refused_by_falcon(
    req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError, params: object
) -> None:
    if isinstance(error, falcon.HTTPMethodNotAllowed):
        resp.set_headers(error.headers or {})
        resp.set_header("allow", ", ".join(_allowed(error)))
        refusal: MicronovaError = MethodNotAllowed(
            "The method specified is not allowed for this resource."
        )
    elif isinstance(error, falcon.HTTPNotFound):
        refusal = NotFound(" ")
    else:
        refusal = Invalid(error.description or error.title)
    _tell(req, resp, error.status_code, refusal)


def _allowed(error: falcon.HTTPMethodNotAllowed) -> list[str]:
    methods = dict(error.headers or {}).get("Allow", "").split(", ")
    return [method for method in methods if method != "OPTIONS"]


def _tell(req: falcon.Request, resp: falcon.Response, status: int, error: MicronovaError) -> None:
    version = getattr(req.context, "version", None)
    template = _EXPLANATIONS.get(status, "{detail}")
    told: dict[str, Any] = {
        "status": status,
        "title": _title(status),
        "detail": template.format(
            detail=error.message.strip(),
            method=req.method,
            media=error.details.get("given", ""),
        ),
    }
    if version is not None and version >= _CODES_SINCE:
        told["code"] = api_code(error)
    told["request_id"] = req.env.get("openstack.request_id", "")
    if status == 406 and version is None:
        told["max_version"] = microversions.text(microversions.MAXIMUM)
        told["min_version"] = microversions.text(microversions.MINIMUM)
    resp.status = falcon.code_to_http_status(status)
    accept = req.get_header("accept") or "*/*"
    kind = _JSON if accept == "*/*" else req.client_prefers(_TOLD_IN)
    if kind == _JSON:
        resp.content_type = _JSON
        resp.data = orjson.dumps({"errors": [told]})
    else:
        resp.content_type = f"{kind or 'text/plain'}; charset=UTF-8"
        form = _page if kind == _HTML else _text
        resp.data = form(f"{status} {told['title']}", told["detail"]).encode()


def _page(title: str, detail: str) -> str:
    text = "<br />".join(html.escape(line.strip()) for line in detail.strip().split("\n"))
    return (
        f"<html>\n <head>\n  <title>{title}</title>\n </head>\n"
        f" <body>\n  <h1>{title}</h1>\n  {text}\n </body>\n</html>"
    )


def _text(title: str, detail: str) -> str:
    return f"{title}\n\n{detail}"


def _title(status: int) -> str:
    return "Request Entity Too Large" if status == 413 else HTTPStatus(status).phrase
